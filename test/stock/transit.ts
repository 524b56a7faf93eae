import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { freePort } from '../support/ports.ts'
import { StockNetwork } from './network.ts'
import { OurRouter } from './our-router.ts'
import { seen } from './stock-router.ts'

// An OpenZiti host and client, each connected to an OpenZiti router, reach each other through our
// router, which alone has links to both. The OpenZiti routers dial these links and offer several
// sockets per link, of which our router accepts one. `node test/stock/transit.ts --binary PATH`

const { values: options } = parseArgs({ options: { binary: { type: 'string' } } })
const { binary } = options
if (binary === undefined || !existsSync(binary)) {
  console.log('skipped: --binary names no program of the router family, so there is nothing to try')
  process.exit(0)
}
await using network = await StockNetwork.start(binary, [])
await network.addRouter('er1', { linkGroups: ['one'] })
await network.addRouter('er2', { linkGroups: ['two'] })
const { folder } = network.cluster
const id = await network.post('edge-routers', { name: 'ours' })
const { enrollmentJwt } = await network.detail(1, `edge-routers/${id}`)
const ours = new OurRouter({
  folder: join(folder, 'ours'),
  endpoint: network.routers[0]?.options.endpoint ?? '',
  linkPort: await freePort(),
  linkGroups: ['one', 'two'],
  isDialedOnly: true,
})
await ours.enroll(String(enrollmentJwt))
ours.start()
network.routerIds.push(id)
const children: ChildProcess[] = []
try {
  await seen('all routers online', () => network.areOnline(1))
  await seen('two links', async () => (await network.fabric(1, 'links')).length === 2)
  await network.post('services', { name: 'echo', encryptionRequired: true })
  const all = { semantic: 'AnyOf', serviceRoles: ['#all'] }
  for (const [type, role] of [
    ['Bind', 'hosts'],
    ['Dial', 'users'],
  ] as const) {
    const identityRoles = [`#${role}`]
    await network.post('service-policies', { ...all, name: type, type, identityRoles })
    const edgeRouterRoles = [type === 'Bind' ? '#er1' : '#er2']
    const policy = { semantic: 'AnyOf', name: role, identityRoles, edgeRouterRoles }
    await network.post('edge-router-policies', policy)
  }
  await network.post('service-edge-router-policies', {
    ...all,
    name: 's',
    edgeRouterRoles: ['#all'],
  })
  const { file: host } = await network.addClient('host', 'hosts')
  const { file: user } = await network.addClient('user', 'users')
  children.push(run(['demo', 'echo-server', '-i', host, '-s', 'echo', '-v'], 'host'))
  await seen('a terminator of the host', async () => {
    const { body } = await network.client(1).request('GET', '/edge/management/v1/terminators')
    return (body.data as unknown[]).length > 0
  })
  const word = 'a word of eighteen letters\n'
  await seen('a word comes back', async () => (await echoed(user, Buffer.from(word))).text === word)
  const sent = Buffer.from(`${randomBytes(8 * 1024 * 1024).toString('hex')}\n`)
  await seen(
    '16 MiB come back whole',
    async () => (await echoed(user, sent)).digest === sha256(sent),
  )
  console.log('all seen')
} catch (error) {
  console.log((await ours.logText()).split('\n').slice(-30).join('\n'))
  throw error
} finally {
  for (const child of children) child.kill('SIGKILL')
  await ours.kill()
}

function run(args: readonly string[], name: string): ChildProcess {
  const child = spawn(binary ?? '', args, { stdio: ['pipe', 'pipe', 'pipe'] })
  const log = createWriteStream(join(folder, `${name}.log`))
  child.stdout?.pipe(log)
  child.stderr?.pipe(log)
  return child
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** The data that a client of the service receives, over a separate connection. */
async function echoed(user: string, sent: Buffer): Promise<{ text: string; digest: string }> {
  const child = spawn(binary ?? '', ['demo', 'zcat', '-i', user, 'ziti:echo'])
  const got: Buffer[] = []
  let bytes = 0
  child.stdout.on('data', (chunk: Buffer) => {
    got.push(chunk)
    bytes += chunk.length
  })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  child.stdin.write(sent)
  const beganMs = performance.now()
  while (bytes < sent.length && child.exitCode === null && performance.now() - beganMs < 60_000) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const seconds = (performance.now() - beganMs) / 1000
  const circuits = await network.fabric(1, 'circuits')
  child.stdin.end()
  child.kill()
  if (child.exitCode === null) await once(child, 'exit')
  console.log(`    ${bytes} of ${sent.length} bytes in ${seconds.toFixed(1)} s`)
  console.log(`    circuit ${JSON.stringify(circuits.at(-1) ?? null).slice(0, 400)}`)
  if (bytes < sent.length) console.log(`    ${errors.split('\n').slice(-6).join('\n    ')}`)
  const all = Buffer.concat(got)
  return { text: all.toString(), digest: sha256(all) }
}
