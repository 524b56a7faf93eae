import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { StockNetwork } from '../test/stock/network.ts'
import { endAndShow, profiledTo } from './support/cpu-profile.ts'
import { LeanClient } from './support/lean-client.ts'
import { threadsMs, threadsMsSince } from './support/processor-time.ts'
import { heading } from './support/report.ts'
import { connectOnce, stormNetwork } from './support/storm-load.ts'

// Shows where a controller spends its time. Three controllers run from the sources under load, each
// with the sampling profiler of V8. For one of them, the report shows the shares of the folders of
// src in the time of each thread, and the source lines that take the most time. `node
// bench/profile.ts [--of create|read|connect] [--seconds N] [--rows N] [--clients N]`.

const { values: options } = parseArgs({
  options: {
    of: { type: 'string', default: 'create' },
    seconds: { type: 'string', default: '10' },
    rows: { type: 'string', default: '12' },
    clients: { type: 'string', default: '32' },
  },
})

const folder = mkdtempSync(join(tmpdir(), 'flotilla-profile-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
console.log(heading(`shares of the processor time of a controller, by its threads: ${options.of}`))
const whole = await StockNetwork.start('', [], {
  hasCalmElections: false,
  program: join(import.meta.dirname, '../bin/flotilla'),
  env: profiledTo(folder),
})
const { cluster } = whole
const { admin } = cluster
if (options.of === 'connect') await whole.addOurRouter('gate')
const session = await cluster.loggedIn(1)
const token = session.token ?? ''
const leader = await cluster.leader()
const pid = cluster.pid(leader) ?? 0
const CLIENTS = Number(options.clients)
const MANAGEMENT = '/edge/management/v1'
let serial = 0

const [url = ''] = [admin.controllers[leader - 1]]
const target = { title: 'ours', pids: [], controllers: [url], ca: admin.ca, token, folder }
const network =
  options.of === 'connect' ? await stormNetwork(target, { services: 20, devices: 64 }) : null

async function request(client: LeanClient): Promise<number> {
  if (network !== null) {
    serial += 1
    await connectOnce(target, network, serial)
    return 200
  }
  if (options.of === 'read') {
    return (await client.request('GET', `${MANAGEMENT}/services/${id}`, token)).status
  }
  serial += 1
  const body = `{"name":"profiled-${serial}","encryptionRequired":true,"roleAttributes":["a","b"]}`
  return (await client.request('POST', `${MANAGEMENT}/services`, token, body)).status
}

const made = await session.request('POST', `${MANAGEMENT}/services`, {
  body: { name: 'read', encryptionRequired: true },
})
const { id } = made.body.data as { readonly id: string }
const endMs = performance.now() + Number(options.seconds) * 1000
let requests = 0
const before = threadsMs(pid)
await Promise.all(
  Array.from({ length: CLIENTS }, async () => {
    const client = await LeanClient.connect(admin.controllers[leader - 1] ?? '', admin.ca)
    while (performance.now() < endMs) {
      const status = await request(client)
      if (status >= 300) throw new Error(`status ${status}`)
      requests += 1
    }
    client.close()
  }),
)
const threads = [...threadsMsSince(pid, before)]
  .filter(([, ms]) => ms / requests >= 0.001)
  .map(([name, ms]) => `${name} ${(ms / requests).toFixed(3)}`)
console.log(`${requests} requests by ${CLIENTS} clients to the leader`)
console.log(`processor time of its threads a request, ms: ${threads.join(', ')}`)
await endAndShow(pid, folder, {
  operations: requests,
  operation: 'a request',
  rows: Number(options.rows),
})
await whole[Symbol.asyncDispose]()
