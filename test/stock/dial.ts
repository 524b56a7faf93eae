import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { StockNetwork } from './network.ts'
import { seen } from './stock-router.ts'

// A host and a client of the public family reach each other through two of its routers: the host at one, the client at the
// other, a link between them. `node test/stock/dial.ts --binary PATH`

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

await network.post('services', { name: 'echo', encryptionRequired: true, roleAttributes: ['echo'] })
const all = { semantic: 'AnyOf', serviceRoles: ['#echo'] }
await network.post('service-policies', {
  ...all,
  name: 'b',
  type: 'Bind',
  identityRoles: ['#hosts'],
})
await network.post('service-policies', {
  ...all,
  name: 'd',
  type: 'Dial',
  identityRoles: ['#users'],
})
await network.post('service-edge-router-policies', {
  name: 's',
  semantic: 'AnyOf',
  serviceRoles: ['#all'],
  edgeRouterRoles: ['#all'],
})
for (const [role, router] of [
  ['hosts', 'er1'],
  ['users', 'er2'],
] as const) {
  await network.post('edge-router-policies', {
    name: role,
    semantic: 'AnyOf',
    identityRoles: [`#${role}`],
    edgeRouterRoles: [`#${router}`],
  })
}
const { file: host } = await network.addClient('host', 'hosts')
const { file: user } = await network.addClient('user', 'users')
const children: ChildProcess[] = []
let alive = [1, 2, 3]
try {
  const server = run(['demo', 'echo-server', '-i', host, '-s', 'echo', '-v'], 'host')
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

function run(args: readonly string[], name: string): ChildProcess {
  const child = spawn(binary ?? '', args, { stdio: ['pipe', 'pipe', 'pipe'] })
  let said = ''
  const keep = (chunk: Buffer): void => {
    said += chunk.toString()
    writeFileSync(join(folder, `${name}.log`), said)
  }
  child.stdout?.on('data', keep)
  child.stderr?.on('data', keep)
  return child
}

/** What a client says comes back, by a connection of its own. */
async function echoes(word: string): Promise<void> {
  await seen(`"${word}" comes back through two routers`, async () => {
    const child = spawn(binary ?? '', ['demo', 'zcat', '-i', user, 'ziti:echo'])
    let said = ''
    child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    child.stdin.write(`${word}\n`)
    const deadline = performance.now() + 10_000
    const circuits: unknown[] = []
    while (!said.includes(word) && child.exitCode === null && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    for (const k of alive) circuits.push(...(await network.fabric(k, 'circuits')))
    child.stdin.end()
    child.kill()
    if (child.exitCode === null) await once(child, 'exit')
    if (!said.includes(word)) console.log(`    ${errors.split('\n').slice(-6).join('\n    ')}`)
    else console.log(`    circuit ${JSON.stringify(circuits.at(-1) ?? null).slice(0, 400)}`)
    return said.includes(word)
  })
}

/** An identity file names one controller; a client that starts while that one is away is told of another. */
function reach(file: string, k: number): void {
  const config = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  const url = `${network.cluster.admin.controllers[k - 1]}/edge/client/v1`
  writeFileSync(file, JSON.stringify({ ...config, ztAPI: url, ztAPIs: [url] }))
}
