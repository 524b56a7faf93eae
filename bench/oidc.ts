import { parseArgs } from 'node:util'

import { createServices } from '../src/api/services.ts'
import type { CallerCredentials } from '../src/auth/principal/credentials.ts'
import { systemClock } from '../src/lib/clock.ts'
import { trustedPublicKeys } from '../src/fabric/model/public-keys.ts'
import { parseCertificates } from '../src/pki/certificate.ts'
import { BearerSessions } from '../src/router/edge/bearer-sessions.ts'
import { admin, startController } from '../test/api/support/controller.ts'
import { OidcClient, type OidcDoor, type OidcReply } from '../test/api/support/oidc.ts'
import { raiseLevel } from '../test/api/support/raise-level.ts'
import { clientKey, TlsListener } from '../test/api/support/tls.ts'
import { memberLeaf, signerOf } from '../test/support/member-leaf.ts'
import { TestProvider } from '../test/support/identity-provider.ts'
import { heading, spread } from './support/report.ts'

// Measures the cost of OIDC sessions for a controller compared with sessions of the REST API,
// without the network: requests with an access token or a session token, tokens that are verified
// for the first time, refreshes, and complete log-ins. Also measures the cost of a data model
// change for a router with the same number of access tokens.

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    milliseconds: { type: 'string', default: '500' },
  },
})
const rounds = Number(options.rounds)
const roundMs = Number(options.milliseconds)
const REVOKE_EVERY = 16

const api = '/edge/client/v1'
const controller = await startController()
await raiseLevel(controller)
const { app, parts } = controller
const root = controller.openSession('admin-id')

console.log(heading('Sessions of OIDC, a second; min / median / max over rounds, one process'))
try {
  await main()
} finally {
  await controller.close()
}

async function rateOf(run: (at: number) => unknown): Promise<number> {
  const from = performance.now()
  let done = 0
  while (performance.now() - from < roundMs) {
    const result = run(done)
    if (result instanceof Promise) await result
    done += 1
  }
  return (done * 1000) / (performance.now() - from)
}

/** Alternates between the two, so that other load on the host affects both equally. */
async function compared(
  runs: Readonly<Record<string, (at: number) => unknown>>,
): Promise<Map<string, number[]>> {
  const rates = new Map<string, number[]>()
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, run] of Object.entries(runs)) {
      rates.set(name, [...(rates.get(name) ?? []), await rateOf(run)])
    }
  }
  for (const [name, found] of rates) console.log(`${name.padEnd(44)} ${spread(found)}`)
  return rates
}

function median(values: readonly number[] = []): number {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? NaN
}

async function main(): Promise<void> {
  const oidc = new OidcClient(controller)
  const { access_token: access, refresh_token: refresh } = await oidc.logIn(
    admin.username,
    admin.password,
  )
  await oidc.statusAt(`${api}/current-identity`, access)
  await checks(access)
  await refreshes(oidc, refresh)
  await logIns(oidc)
  await logInsOfPeople()
  await sweeps()
}

function shownBy(fields: Partial<CallerCredentials>): CallerCredentials {
  return {
    address: '127.0.0.1',
    source: '127.0.0.1',
    sessionToken: undefined,
    peerChain: () => null,
    bearers: () => [],
    hostUser: null,
    ...fields,
  }
}

async function checks(access: string): Promise<void> {
  const { gate, oidcTokens } = createServices(parts)
  const wanted = { api: 'client', method: 'GET', permission: 'session' } as const
  const bySession = shownBy({ sessionToken: root })
  const byAccess = shownBy({ bearers: () => [access] })
  const admit = (shown: CallerCredentials): void => {
    const found = gate.admit(shown, wanted)
    if (found instanceof Promise || !found.isAdmitted) throw new Error('not admitted')
  }
  await gate.admit(byAccess, wanted)
  const answered = async (headers: Record<string, string>): Promise<void> => {
    const { statusCode } = await app.inject({ url: `${api}/current-identity`, headers })
    if (statusCode !== 200) throw new Error(`a request is answered with ${statusCode}`)
  }
  const rates = await compared({
    'requests admitted by a session token': () => admit(bySession),
    'requests admitted by an access token': () => admit(byAccess),
    'requests answered, by a session token': () => answered({ 'net-session': root }),
    'requests answered, by an access token': () => answered({ authorization: `Bearer ${access}` }),
    'access tokens verified': () => oidcTokens.judge(access, ['access'], '127.0.0.1'),
  })
  const part = (what: string): string => {
    const [session, bearer] = ['session', 'access'].map((kind) =>
      median(rates.get(`${what} ${kind === 'session' ? 'a session' : 'an access'} token`)),
    )
    return ((bearer ?? NaN) / (session ?? NaN)).toFixed(2)
  }
  const [checks, whole] = [part('requests admitted by'), part('requests answered, by')]
  console.log(`access tokens beside session tokens: checks ${checks}, whole requests ${whole}`)
}

async function refreshes(oidc: OidcClient, first: string): Promise<void> {
  let token = first
  const requests = async (): Promise<void> => {
    const { status, json } = await oidc.refresh(token)
    if (status !== 200) throw new Error(`a refresh is answered with ${status}`)
    token = String(json['refresh_token'])
  }
  await compared({ refreshes: requests })
}

async function manage(path: string, body: object): Promise<string> {
  const url = `/edge/management/v1/${path}`
  const headers = { 'net-session': root }
  const answer = await app.inject({ method: 'POST', url, headers, payload: body })
  if (answer.statusCode !== 201) throw new Error(answer.payload)
  return answer.json<{ data: { id: string } }>().data.id
}

/**
 * Measures log-ins by password, whose main cost is the hash, and by certificate, each request over
 * a new TLS connection.
 */
async function logInsOfPeople(): Promise<void> {
  const oidc = new OidcClient(controller)
  const redeemed = async (client: OidcClient, step: OidcReply): Promise<void> => {
    const { status } = await client.redeem(await client.codeOf(step))
    if (status !== 200) throw new Error(`a redemption is answered with ${status}`)
  }
  const byPassword = { username: admin.username, password: admin.password }
  await compared({
    'log-ins by a password, REST': async () => {
      const url = `${api}/authenticate?method=password`
      const answer = await app.inject({ method: 'POST', url, payload: byPassword })
      if (answer.statusCode !== 200) throw new Error(answer.payload)
    },
    'log-ins by a password, the whole code flow': async () =>
      await redeemed(oidc, await oidc.passed(admin.username, admin.password)),
  })
  const id = await manage('identities', { name: 'holder', type: 'Device', isAdmin: false })
  const by = await clientKey(controller.authorities.issuing, id, controller.clock.nowMs())
  const [{ pem: certPem }] = parseCertificates(by.certificatePem)
  await manage('authenticators', { method: 'cert', identityId: id, certPem })
  const listener = await TlsListener.open(controller)
  const door: OidcDoor = {
    app: {
      inject: async ({ method, url, headers, payload: body }) => {
        const asked = { method, path: url, by, headers, ...(body === undefined ? {} : { body }) }
        const { status, text, headers: told } = await listener.call(asked)
        return { statusCode: status, headers: told, payload: text }
      },
    },
  }
  const holder = new OidcClient(door)
  await compared({
    'log-ins by a certificate, REST': async () => {
      const path = `${api}/authenticate?method=cert`
      const { status, text } = await listener.call({ path, by, body: {} })
      if (status !== 200) throw new Error(text)
    },
    'log-ins by a certificate, the whole code flow': async () => {
      const form = { id: await holder.begin() }
      await redeemed(holder, await holder.send('POST', '/oidc/login/cert', form))
    },
  })
  await listener.close()
}

/** Measures log-ins with the token of an identity provider. */
async function logIns(oidc: OidcClient): Promise<void> {
  const provider = new TestProvider('https://idp.bench', 'bench', () => controller.clock.nowMs())
  const key = await clientKey(controller.authorities.issuing, 'provider', controller.clock.nowMs())
  const [{ sha1, pem, publicKeySha256 }] = parseCertificates(key.certificatePem)
  const leaf = { ...key, certificatePem: pem, publicKeySha256 }
  await manage('external-jwt-signers', {
    name: 'idp',
    issuer: provider.issuer,
    audience: provider.audience,
    enabled: true,
    certPem: pem,
    kid: sha1,
  })
  const ids: string[] = []
  for (let at = 0; at < 64; at += 1) {
    ids.push(await manage('identities', { name: `user ${at}`, type: 'User', isAdmin: false }))
  }
  const signer = signerOf(leaf, [leaf], () => controller.clock.nowMs())
  const nowSeconds = Math.floor(controller.clock.nowMs() / 1000)
  const tokens = await Promise.all(
    ids.map((sub) =>
      signer.sign({
        iss: provider.issuer,
        aud: provider.audience,
        sub,
        iat: nowSeconds,
        exp: nowSeconds + 86_400,
      }),
    ),
  )
  const bearer = (at: number) => ({ authorization: `Bearer ${tokens[at % tokens.length] ?? ''}` })
  await compared({
    'log-ins by a token, REST': async (at) => {
      const url = `${api}/authenticate?method=ext-jwt`
      const answer = await app.inject({ method: 'POST', url, headers: bearer(at), payload: {} })
      if (answer.statusCode !== 200) throw new Error(answer.payload)
    },
    'log-ins by a token, the whole code flow': async (at) => {
      const id = await oidc.begin()
      const step = await oidc.send('POST', '/oidc/login/ext-jwt', { id }, bearer(at))
      const { status } = await oidc.redeem(await oidc.codeOf(step))
      if (status !== 200) throw new Error(`a redemption is answered with ${status}`)
    },
  })
}

/**
 * Measures the cost for a router: every change of the data model makes it check each token of its
 * clients.
 */
async function sweeps(): Promise<void> {
  const leaf = await memberLeaf('ctrl1')
  const signer = signerOf(leaf, [leaf])
  const [key] = trustedPublicKeys({ controllers: [leaf.certificatePem], anchors: [] })
  if (key === undefined) throw new Error('a controller has a key')
  const identities = new Map<string, { disabled: boolean }>()
  const revocations = new Map<string, unknown>()
  const contents = { publicKeys: new Map([[key.kid, key]]), identities, revocations }
  let tell: (changedIds: ReadonlySet<string> | null) => void = () => undefined
  const onChanged = (listener: typeof tell) => {
    tell = listener
    return () => undefined
  }
  const bearers = new BearerSessions({
    model: { contents, onChanged } as never,
    clock: systemClock,
    isShown: () => true,
    onEnded: () => undefined,
  })
  const nowSeconds = Math.floor(Date.now() / 1000)
  const { signal } = new AbortController()
  for (const count of [1000, 10_000, 50_000]) {
    for (let at = bearers.size; at < count; at += 1) {
      identities.set(`i${at}`, { disabled: false })
      const token = await signer.sign({
        iss: 'https://ctrl1:1280/oidc',
        sub: `i${at}`,
        aud: ['native'],
        jti: `j${at}`,
        iat: nowSeconds,
        exp: nowSeconds + 1800,
        scopes: [],
        z_t: 'a',
        z_asid: `s${at}`,
      })
      if ((await bearers.await(token, 0, signal)) === null) throw new Error('a token is not good')
      if (at % REVOKE_EVERY === 0) revocations.set(`r${at}`, { type: 'API_SESSION' })
    }
    const changes = { 'an identity': new Set(['i7']), 'a key': null }
    for (const [what, ids] of Object.entries(changes)) {
      const took: number[] = []
      for (let round = 0; round < rounds * 4; round += 1) {
        const from = performance.now()
        tell(ids)
        took.push(performance.now() - from)
      }
      console.log(`a change of ${what}, ms, ${count} tokens`.padEnd(44), spread(took, 3))
    }
  }
  bearers.stop()
}
