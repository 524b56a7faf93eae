import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { parseArgs } from 'node:util'

import { Channel } from '../src/channel/channel.ts'
import { channelLimits } from '../src/channel/limits.ts'
import { encodeText } from '../src/channel/headers.ts'
import { systemClock } from '../src/lib/clock.ts'

import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../src/pki/authority/certificate-request.ts'
import type { CertificateWithKey } from '../src/pki/authority/authority.ts'
import { OidcClient, type OidcDoor } from '../test/api/support/oidc.ts'
import { freePort } from '../test/support/ports.ts'
import { OurRouter } from '../test/stock/our-router.ts'
import { until } from '../test/process/support/client.ts'
import { TestCluster } from '../test/process/support/cluster.ts'
import { heading, percentile } from './support/report.ts'

// Measures revocation: when an administrator disables an identity or deletes its session, how long
// it takes until each controller refuses the identity's access token, and until the router to which
// its client is connected closes the channel. Times start with the response to the administrator.
// The token is bound to a certificate that the client requested during its log-in.

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '60' } } })
const rounds = Number(options.rounds)
const management = '/edge/management/v1'
const ownIdentity = '/edge/client/v1/current-identity'
const password = 'a long enough password'

console.log(heading(`From a revocation to the refusal, ms, ${rounds} rounds, three controllers`))
await using cluster = await TestCluster.start({ hasCalmElections: false })
const admins = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
const ca = readFileSync(cluster.admin.ca)
const [root] = admins
if (root === undefined) throw new Error('the cluster has no controller')

async function made(path: string, body: object): Promise<string> {
  const answer = await root?.request('POST', management + path, { body })
  if (answer?.status !== 201) throw new Error(`answered ${answer?.status}: ${answer?.text}`)
  return (answer.body.data as { readonly id: string }).id
}

interface Asked {
  readonly method: string
  readonly url: string
  readonly headers: Record<string, string>
  readonly payload?: string
}

function ask(k: number, agent: Agent, { method, url, headers, payload }: Asked) {
  return new Promise<Awaited<ReturnType<OidcDoor['app']['inject']>>>((resolve, reject) => {
    const asked = request(
      (cluster.admin.controllers[k - 1] ?? '') + url,
      { method, headers, agent },
      (answer) => {
        const chunks: Buffer[] = []
        answer.on('data', (chunk: Buffer) => chunks.push(chunk))
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          resolve({
            statusCode: answer.statusCode ?? 0,
            headers: answer.headers as never,
            payload: text,
          })
        })
      },
    )
    asked.on('error', reject)
    asked.end(payload)
  })
}

/**
 * A client with a channel to the router, and with connections to the controllers that stay open.
 */
interface Connected {
  readonly sessionId: string
  readonly access: string
  readonly agent: Agent
  readonly client: RouterClient
}

/** A client's channel to a router. */
interface RouterClient {
  closedAtMs: number | null
}

/**
 * Connects a client to the router. Null if the router refuses it, because it may not know the
 * session yet.
 */
async function dialled(
  port: number,
  token: string,
  { certificatePem: cert, privateKeyPem: key }: CertificateWithKey,
): Promise<RouterClient | null> {
  const tls = { host: '127.0.0.1', port, cert, key, rejectUnauthorized: false }
  const socket = connect({ ...tls, ALPNProtocols: ['ziti-edge'] }).on('error', () => undefined)
  const client: RouterClient = { closedAtMs: null }
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const channel = new Channel({
    socket,
    limits: channelLimits,
    clock: systemClock,
    hello: {
      contentType: 0,
      sequence: -1,
      headers: new Map([[1002, encodeText(token)]]),
      body: encodeText('client'),
    },
    onHello: ({ headers }) => {
      channel.open(null)
      resolve(headers.get(2)?.[0] === 1)
    },
    onMessage: () => null,
    onClose: () => {
      client.closedAtMs = performance.now()
      resolve(false)
    },
  })
  if (await promise) return client
  channel.close('not yet')
  return null
}

async function connected(username: string, k: number, port: number): Promise<Connected> {
  const plain = new Agent({ ca })
  const oidc = new OidcClient({ app: { inject: (asked) => ask(k, plain, asked) } })
  oidc.host = new URL(cluster.admin.controllers[k - 1] ?? '').host
  const privateKeyPem = generatePrivateKeyPem()
  const csrPem = await createCertificateRequest({ privateKeyPem, id: username })
  const form = { id: await oidc.begin(), username, password, csrPem }
  const step = await oidc.send('POST', '/oidc/login/password', form)
  const { json } = await oidc.redeem(await oidc.codeOf(step))
  const access = String(json['access_token'])
  const key: CertificateWithKey = { certificatePem: String(json['session_cert']), privateKeyPem }
  const { certificatePem: cert } = key
  const agent = new Agent({ ca, cert, key: privateKeyPem, keepAlive: true })
  const claims = Buffer.from(access.split('.')[1] ?? '', 'base64url').toString('utf8')
  const { z_asid: sessionId } = JSON.parse(claims) as Readonly<Record<string, string>>
  const client = await until('the router knows the client', () => dialled(port, access, key))
  return { sessionId: sessionId ?? '', access, agent, client }
}

/** Polls a controller until it refuses the token. @returns the time of the refusal. */
async function refusedAt(k: number, { access, agent }: Connected): Promise<number> {
  const headers = { authorization: `Bearer ${access}` }
  for (;;) {
    const { statusCode } = await ask(k, agent, { method: 'GET', url: ownIdentity, headers })
    if (statusCode === 401) return performance.now()
    if (statusCode !== 200) throw new Error(`controller ${k} answers ${statusCode}`)
  }
}

async function closedAt({ client }: Connected): Promise<number> {
  while (client.closedAtMs === null) await new Promise((resolve) => setTimeout(resolve, 1))
  return client.closedAtMs
}

await made('/edge-router-policies', {
  name: 'all',
  semantic: 'AnyOf',
  edgeRouterRoles: ['#all'],
  identityRoles: ['#all'],
})
const routerId = await made('/edge-routers', { name: 'gate' })
const shown = await root.request('GET', `${management}/edge-routers/${routerId}`)
const { enrollmentJwt } = shown.body.data as { readonly enrollmentJwt: string }
const port = await freePort()
const router = new OurRouter({
  folder: join(cluster.folder, 'gate'),
  endpoint: `tls:127.0.0.1:${Number(new URL(cluster.admin.controllers[0] ?? '').port) + 100}`,
  linkPort: await freePort(),
  edgePort: port,
})
await router.enroll(enrollmentJwt)
router.start()
// Kills the router when this process ends for any reason.
process.on('exit', () => {
  if (router.pid > 0) process.kill(router.pid, 'SIGKILL')
})

for (const what of ['an identity is disabled', 'a session is deleted'] as const) {
  const atControllers: number[] = []
  const atRouter: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const username = `${what} ${round}`
    const identityId = await made('/identities', { name: username, type: 'User', isAdmin: false })
    await made('/authenticators', { method: 'updb', identityId, username, password })
    const one = await connected(username, (round % 3) + 1, port)
    const waiting = [...[1, 2, 3].map((k) => refusedAt(k, one)), closedAt(one)]
    const by = admins[(round + 1) % 3] ?? root
    const answer =
      what === 'an identity is disabled'
        ? await by.request('POST', `${management}/identities/${identityId}/disable`, {
            body: { durationMinutes: 0 },
          })
        : await by.request('DELETE', `${management}/api-sessions/${one.sessionId}`)
    const from = performance.now()
    if (answer.status !== 200) throw new Error(`answered ${answer.status}: ${answer.text}`)
    const ends = (await Promise.all(waiting)).map((at) => Math.max(0, at - from))
    atRouter.push(ends.pop() ?? NaN)
    atControllers.push(...ends)
    one.agent.destroy()
  }
  for (const [where, found] of [
    ['each controller', atControllers],
    ['the router', atRouter],
  ] as const) {
    const [p50, p99] = [0.5, 0.99].map((q) => percentile(found, q).toFixed(1))
    console.log(`  ${what}: ${where}`.padEnd(48), `p50 ${p50}, p99 ${p99}`)
  }
}
await router.kill()
