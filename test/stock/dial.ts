import type { ChildProcess } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { inBackground, offerEcho, sendAndReceive } from './echo.ts'
import { StockNetwork } from './network.ts'
import { seen } from './stock-router.ts'

// An OpenZiti host and client reach each other through two OpenZiti routers with a link between
// them: the host at one, the client at the other. `node test/stock/dial.ts --binary PATH`

const { values: options } = parseArgs({ options: { binary: { type: 'string' } } })
const { binary } = options
if (binary === undefined || !existsSync(binary)) {
  console.log('skipped: --binary names no program of the router family, so there is nothing to try')
  process.exit(0)
}
await using network = await StockNetwork.start(binary, ['er1', 'er2'])
const { folder } = network.cluster
for (const k of [1, 2, 3]) await seen(`both routers online on ctrl${k}`, () => network.areOnline(k))
await seen('a link', async () => (await network.fabric(1, 'links')).length > 0)

await offerEcho(network, { hosts: 'er1', users: 'er2' })
const { file: host } = await network.addClient('host', 'hosts')
const { file: user } = await network.addClient('user', 'users')
const children: ChildProcess[] = []
let alive = [1, 2, 3]
try {
  const server = inBackground(
    binary,
    ['demo', 'echo-server', '-i', host, '-s', 'echo', '-v'],
    join(folder, 'host.log'),
  )
  children.push(server)
  for (const k of [1, 2, 3]) {
    await seen(`a terminator of the host on ctrl${k}`, async () => {
      const { body } = await network.client(k).request('GET', '/edge/management/v1/terminators')
      return (body.data as unknown[]).length > 0
    })
  }
  await seen('the host shown as connected to an edge router on ctrl2', async () => {
    const { body } = await network
      .client(2)
      .request('GET', '/edge/management/v1/identities?limit=100')
    const shown = body.data as { name: string; hasEdgeRouterConnection: boolean }[]
    return shown.find(({ name }) => name === 'host')?.hasEdgeRouterConnection === true
  })
  await echoes('a word of eighteen letters')
  await seen('the circuit is over', async () => {
    const counts = await Promise.all(alive.map((k) => network.fabric(k, 'circuits')))
    return counts.every((circuits) => circuits.length === 0)
  })
  const leader = await network.cluster.leader()
  network.cluster.kill(leader)
  alive = alive.filter((k) => k !== leader)
  reach(user, alive[0] ?? 1)
  console.log(`  ctrl${leader}, which led, is killed`)
  await seen('a new leader', async () => (await network.cluster.leader()) !== leader)
  await echoes('another word of it')
  console.log('all seen')
} finally {
  for (const child of children) child.kill('SIGKILL')
}

/** Expects the words of a client to come back, over a separate connection. */
async function echoes(word: string): Promise<void> {
  await seen(`"${word}" comes back through two routers`, async () => {
    const circuits: unknown[] = []
    const { bytes, errors } = await sendAndReceive(
      binary ?? '',
      user,
      Buffer.from(`${word}\n`),
      async () => {
        for (const k of alive) circuits.push(...(await network.fabric(k, 'circuits')))
      },
    )
    const isBack = bytes.includes(word)
    if (!isBack) console.log(`    ${errors}`)
    else console.log(`    circuit ${JSON.stringify(circuits.at(-1) ?? null).slice(0, 400)}`)
    return isBack
  })
}

/**
 * An identity file names one controller; this writes another address into it, for a client that
 * starts while that controller is stopped.
 */
function reach(file: string, k: number): void {
  const config = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  const url = `${network.cluster.admin.controllers[k - 1]}/edge/client/v1`
  writeFileSync(file, JSON.stringify({ ...config, ztAPI: url, ztAPIs: [url] }))
}
