import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

import { TestCluster } from '../test/process/support/cluster.ts'
import { LeanClient } from './support/lean-client.ts'
import { load } from './support/load.ts'
import { processorMs, untilIdle } from './support/processor-time.ts'
import { heading } from './support/report.ts'
import { writeCurves } from './support/scale-drawing.ts'

// Measures how the costs of a cluster grow with the number of its controllers. Uses real processes
// on this machine, one cluster after the other. `node bench/scale-controllers.ts [--most N]
// [--seconds N] [--folder FOLDER]` prints a table, and writes the curves as SVG to the folder.

const { values: options } = parseArgs({
  options: {
    most: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '5' },
    folder: { type: 'string', default: '.test/scale' },
  },
})
const seconds = Number(options.seconds)
const MANAGEMENT = '/edge/management/v1'
const CLIENTS = 32
const IDLE_SECONDS = 10
let serial = 0

/** Measured values in ms, by name. */
type Figures = Readonly<Record<string, number>>

async function measure(nodes: number): Promise<Figures> {
  await using cluster = await TestCluster.start({ nodes, hasCalmElections: false })
  const { admin } = cluster
  const session = await cluster.loggedIn(1)
  const token = session.token ?? ''
  const leader = (await cluster.leader()) - 1
  const pids = Array.from({ length: nodes }, (_, at) => cluster.pid(at + 1) ?? 0)
  const totalMs = (): number => pids.reduce((sum, pid) => sum + processorMs(pid), 0)
  const create = async (client: LeanClient): Promise<number> => {
    serial += 1
    const body = `{"name":"scale-${serial}","encryptionRequired":true}`
    return (await client.request('POST', `${MANAGEMENT}/services`, token, body)).status
  }
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, () =>
      LeanClient.connect(admin.controllers[leader] ?? '', admin.ca),
    ),
  )
  await load(clients, create, seconds)
  const [totalBefore, leaderBefore] = [totalMs(), processorMs(pids[leader] ?? 0)]
  const { requests } = await load(clients, create, seconds)
  const ofAll = (totalMs() - totalBefore) / requests
  const ofLeader = (processorMs(pids[leader] ?? 0) - leaderBefore) / requests
  const alone = await load(clients.slice(0, 1), create, seconds)
  for (const client of clients) client.close()
  await untilIdle(pids)
  const idleBefore = totalMs()
  await sleep(IDLE_SECONDS * 1000)
  return {
    'create, processor time of all controllers': ofAll,
    'create, processor time of the leader': ofLeader,
    'create by one client, p50': alone.p50,
    'an idle second of one controller': (totalMs() - idleBefore) / IDLE_SECONDS / nodes,
  }
}

console.log(heading('costs by the number of controllers, which share this machine'))
const sizes = [1, 3, 5, 7].filter((nodes) => nodes <= Number(options.most))
const found: Figures[] = []
for (const nodes of sizes) found.push(await measure(nodes))
const curves = Object.keys(found[0] ?? {}).map((name) => ({
  name,
  values: found.map((figures) => figures[name] ?? NaN),
}))
writeCurves(options.folder, 'cost-by-controllers.svg', {
  over: 'controllers',
  sizes,
  curves,
  unit: 'ms',
})
