import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, createWriteStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { pause } from '../process/support/client.ts'
import { type StockClient, StockNetwork } from './network.ts'
import { seen } from './stock-router.ts'

// An OpenZiti client has a circuit through an OpenZiti router, and its access is removed. For each
// reason, this measures the time from the answer to the removing request until the connection
// closes. `node test/stock/access.ts --binary PATH`, and with `--router ours` through our router.

const { values: options } = parseArgs({
  options: {
    binary: { type: 'string' },
    only: { type: 'string', default: '' },
    router: { type: 'string', default: 'stock' },
  },
})
const { binary } = options
if (binary === undefined || !existsSync(binary)) {
  console.log('skipped: --binary names no program of the router family, so there is nothing to try')
  process.exit(0)
}
/**
 * The maximum wait. A router that does not receive the information keeps the connection open until
 * its server gives up; a busy machine needs a part of this time.
 */
const longestMs = 5_000
/** Interval in which OpenZiti clients check the posture of their device. */
const deviceMs = 10_000
/**
 * Time during which a new leader lets clients report their posture again, before it ends sessions
 * because of missing reports.
 */
const graceMs = 60_000

interface Held {
  readonly user: StockClient
  readonly policyId: string
  readonly checkId: string
  readonly serviceId: string
  /** ID of the policy that lets the client use the router. */
  readonly routerPolicyId: string
  /** A process that must run while the client may dial. */
  readonly watched: ChildProcess
}

const reasons: Readonly<Record<string, (of: Held) => Promise<unknown>>> = {
  'its service session is deleted': async ({ user }) =>
    network.manage('DELETE', `sessions/${await idOf('sessions', user)}`),
  'its API session is deleted': async ({ user }) =>
    network.manage('DELETE', `api-sessions/${await idOf('api-sessions', user)}`),
  'its API session is revoked': async ({ user }) =>
    network.manage('POST', 'revocations', {
      id: await idOf('api-sessions', user),
      type: 'API_SESSION',
      expiresAt: '2100-01-01T00:00:00Z',
    }),
  'its policy is deleted': ({ policyId }) =>
    network.manage('DELETE', `service-policies/${policyId}`),
  'its policy selects other identities': ({ policyId }) =>
    network.manage('PATCH', `service-policies/${policyId}`, { identityRoles: ['#others'] }),
  'its edge-router policy is deleted': ({ routerPolicyId }) =>
    network.manage('DELETE', `edge-router-policies/${routerPolicyId}`),
  'its identity loses the role': ({ user }) =>
    network.manage('PATCH', `identities/${user.id}`, { roleAttributes: ['others'] }),
  'its identity is disabled': ({ user }) =>
    network.manage('POST', `identities/${user.id}/disable`, { durationMinutes: 5 }),
  'its identity is deleted': ({ user }) => network.manage('DELETE', `identities/${user.id}`),
  'its service is deleted': ({ serviceId }) => network.manage('DELETE', `services/${serviceId}`),
  'a posture check of its policy asks for another program': ({ checkId }) =>
    network.manage('PATCH', `posture-checks/${checkId}`, {
      typeId: 'PROCESS',
      process: programOf('/bin/none'),
    }),
  'its policy gets a posture check that it fails': async ({ policyId }) => {
    const failing = await network.post('posture-checks', {
      name: 'fails',
      typeId: 'DOMAIN',
      domains: ['none.test'],
      roleAttributes: ['fails'],
    })
    await network.manage('PATCH', `service-policies/${policyId}`, {
      postureCheckRoles: [`@${failing}`],
    })
  },
  'its device ends a program that a posture check asks for': ({ watched }) => {
    watched.kill('SIGKILL')
    return Promise.resolve()
  },
}

const startedMs = performance.now()
const isOurs = options.router === 'ours'
await using network = await StockNetwork.start(binary, isOurs ? [] : ['er1'])
if (isOurs) await network.addOurRouter('er1')
const { folder } = network.cluster
for (const k of [1, 2, 3]) await seen(`the router online on ctrl${k}`, () => network.areOnline(k))
await network.post('service-edge-router-policies', {
  name: 's',
  semantic: 'AnyOf',
  serviceRoles: ['#all'],
  edgeRouterRoles: ['#all'],
})
await network.post('edge-router-policies', {
  name: 'e',
  semantic: 'AnyOf',
  identityRoles: ['#hosts'],
  edgeRouterRoles: ['#all'],
})
await network.post('service-policies', {
  name: 'b',
  type: 'Bind',
  semantic: 'AnyOf',
  serviceRoles: ['#echo'],
  identityRoles: ['#hosts'],
})
const host = await network.addClient('host', 'hosts')
const children: ChildProcess[] = []
const late: string[] = []
try {
  let serial = 0
  for (const [reason, take] of Object.entries(reasons)) {
    if (!reason.includes(options.only)) continue
    serial += 1
    const held = await offered(serial)
    const connection = await dialed(held, serial)
    const exited = once(connection, 'exit')
    const isOfPosture = reason.includes('posture')
    const patienceMs = longestMs + (isOfPosture ? deviceMs : 0)
    if (isOfPosture)
      await pause(Math.max(0, startedMs + graceMs + 2 * longestMs - performance.now()))
    const askedMs = performance.now()
    await take(held)
    const tookMs = performance.now()
    const isOver = await Promise.race([
      exited.then(() => true),
      new Promise((resolve) => setTimeout(() => resolve(false), patienceMs)),
    ])
    const [stayedMs, requestMs] = [performance.now() - tookMs, tookMs - askedMs].map(Math.round)
    if (isOver !== true) late.push(reason)
    const outcome = isOver === true ? `closed after ${stayedMs} ms` : `open after ${patienceMs} ms`
    console.log(`  ${outcome} (request ${requestMs} ms): ${reason}`)
    connection.kill('SIGKILL')
  }
  if (late.length > 0) throw new Error(`left open: ${late.join('; ')}`)
  console.log('all seen')
} finally {
  for (const child of children) child.kill('SIGKILL')
}

function programOf(path: string): object {
  return { osType: 'Linux', path, hashes: [], signerFingerprint: '' }
}

/** Creates a separate hosted service that one client may dial while a program runs. */
async function offered(serial: number): Promise<Held> {
  const [name, role] = [`echo${serial}`, `users${serial}`]
  const serviceId = await network.post('services', {
    name,
    encryptionRequired: true,
    roleAttributes: ['echo'],
  })
  const program = join(folder, `watched${serial}`)
  copyFileSync('/bin/sleep', program)
  const watched = spawn(program, ['600'], { stdio: 'ignore' })
  children.push(watched)
  // OpenZiti routers know one program of a device, and operating systems whose version has three
  // parts.
  const checkId = await network.post('posture-checks', {
    name: `runs${serial}`,
    typeId: 'PROCESS',
    roleAttributes: [],
    process: programOf(program),
  })
  const policyId = await network.post('service-policies', {
    name: `d${serial}`,
    type: 'Dial',
    semantic: 'AnyOf',
    serviceRoles: [`@${serviceId}`],
    identityRoles: [`#${role}`],
    postureCheckRoles: [`@${checkId}`],
  })
  const user = await network.addClient(`user${serial}`, role)
  const routerPolicyId = await network.post('edge-router-policies', {
    name: `e${serial}`,
    semantic: 'AnyOf',
    identityRoles: [`@${user.id}`],
    edgeRouterRoles: ['#all'],
  })
  started(['demo', 'echo-server', '-i', host.file, '-s', name], `host${serial}`)
  await seen(`a terminator of ${name}`, async () => {
    const path = `/edge/management/v1/services/${serviceId}/terminators`
    const { body } = await network.client(1).request('GET', path)
    return (body.data as unknown[]).length > 0
  })
  return { user, policyId, checkId, serviceId, routerPolicyId, watched }
}

/** A connection through which a word was sent and came back. */
async function dialed({ user }: Held, serial: number): Promise<ChildProcessWithoutNullStreams> {
  const word = `word ${serial}`
  let connection: ChildProcessWithoutNullStreams | null = null
  await seen(`"${word}" comes back`, async () => {
    const child = started(['demo', 'zcat', '-i', user.file, `ziti:echo${serial}`], `user${serial}`)
    let said = ''
    child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
    child.stdin.write(`${word}\n`)
    while (!said.includes(word) && child.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    connection = said.includes(word) ? child : null
    return connection !== null
  })
  if (connection === null) throw new Error(`${word} did not come back`)
  return connection
}

function started(args: readonly string[], name: string): ChildProcessWithoutNullStreams {
  const child = spawn(binary ?? '', args, { stdio: ['pipe', 'pipe', 'pipe'] })
  const log = createWriteStream(join(folder, `${name}.log`), { flags: 'a' })
  child.stdout.pipe(log)
  child.stderr.pipe(log)
  children.push(child)
  return child
}

/** The ID of the session of the newest attempt: earlier attempts to dial left other sessions. */
async function idOf(kind: 'sessions' | 'api-sessions', { id }: StockClient): Promise<string> {
  const apiSession = await newest('api-sessions', `identity="${id}"`)
  return kind === 'api-sessions' ? apiSession : await newest(kind, `apiSession="${apiSession}"`)
}

async function newest(kind: string, of: string): Promise<string> {
  const filter = encodeURIComponent(`${of} sort by createdAt desc limit 1`)
  const path = `/edge/management/v1/${kind}?filter=${filter}`
  const { body } = await network.client(1).request('GET', path)
  const [first] = (body.data ?? []) as { id: string }[]
  if (first === undefined) throw new Error(`${path}: ${JSON.stringify(body)}`)
  return first.id
}
