import { beforeAll, expect, test } from 'vitest'
import type { Channel } from '../../../src/channel/channel.ts'
import { dialChannel } from '../../../src/channel/dial.ts'
import { channelLimits } from '../../../src/channel/limits.ts'
import {
  circuitRequestMessage,
  readCircuitResponse,
} from '../../../src/channel/messages/circuit-requests.ts'
import { CONTROL_PROTOCOL, routerHelloMessage } from '../../../src/channel/messages/control.ts'
import { edgeErrorCode } from '../../../src/channel/messages/edge.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { type Client, until } from '../support/client.ts'
import type { TestCluster } from '../support/cluster.ts'
import {
  certifiedKey,
  dataOf,
  Enrolling,
  fingerprintOf,
  newRequest,
  newRouterKeys,
} from '../support/enrolling.ts'
import { sharedCluster } from '../support/shared-cluster.ts'

// Goal: a posture report to one controller is valid on all controllers, as long as that controller
// runs. Method: three real processes; reports and queries go to different ones, and the one that
// received the report is killed.

let cluster: TestCluster
let admin: Client
beforeAll(async () => {
  cluster = sharedCluster()
  admin = await cluster.loggedIn(1)
})

const management = '/edge/management/v1'
const own = '/edge/client/v1'
const user = { username: 'machine user', password: 'a password of its own' }
let index = ''

async function make(path: string, body: unknown): Promise<string> {
  const answer = await admin.request('POST', management + path, { body })
  expect(answer.status, answer.text).toBe(201)
  index = String(answer.headers['net-index'])
  return (answer.body.data as { id: string }).id
}

test('a posture report to one controller admits the device on all, a report that fails the check excludes it on all, and the report must be repeated if its controller crashes', async () => {
  const all = { semantic: 'AnyOf', identityRoles: ['#machines'], serviceRoles: ['#machines'] }
  const roleAttributes = ['machines']
  const person = { name: 'machine user', type: 'User', isAdmin: false, roleAttributes }
  const identityId = await make('/identities', person)
  await make('/authenticators', { identityId, method: 'updb', ...user })
  const serviceId = await make('/services', {
    name: 'wiki',
    encryptionRequired: true,
    roleAttributes,
  })
  await make('/edge-routers', { name: 'edge' })
  await make('/edge-router-policies', { ...all, name: 'routers', edgeRouterRoles: ['#all'] })
  await make('/service-edge-router-policies', { ...all, name: 'ways', edgeRouterRoles: ['#all'] })
  const checkId = await make('/posture-checks', {
    name: 'at work',
    typeId: 'DOMAIN',
    domains: ['corp.test'],
  })
  await make('/service-policies', {
    ...all,
    name: 'dial',
    type: 'Dial',
    postureCheckRoles: [`@${checkId}`],
  })

  const first = cluster.client(1)
  const headers = { 'net-min-index': index }
  const logIn = await first.request('POST', `${own}/authenticate?method=password`, {
    body: user,
    headers,
  })
  expect(logIn.status, logIn.text).toBe(200)
  const { token } = logIn.body.data as { token: string }
  const clients = [1, 2, 3].map((k) => {
    const client = k === 1 ? first : cluster.client(k)
    client.token = token
    return client
  })
  const ask = (k: number, method: string, path: string, body?: unknown) => {
    const client = clients[k - 1]
    if (client === undefined) throw new Error('no such controller')
    return client.request(method, own + path, body === undefined ? { headers } : { body, headers })
  }
  const tell = async (k: number, domain: string): Promise<void> => {
    const body = { id: checkId, typeId: 'DOMAIN', domain }
    const answer = await ask(k, 'POST', '/posture-response', body)
    expect(answer.status, answer.text).toBe(201)
  }
  const passesOn = async (k: number): Promise<boolean | null> => {
    const answer = await ask(k, 'GET', `/services/${serviceId}`).catch(() => null)
    if (answer?.status !== 200) return null
    const { postureQueries } = answer.body.data as { postureQueries: { isPassing: boolean }[] }
    return postureQueries[0]?.isPassing ?? null
  }
  const agree = (isPassing: boolean): Promise<unknown> =>
    until(`all say ${isPassing}`, async () =>
      (await Promise.all([1, 2, 3].map(passesOn))).every((says) => says === isPassing),
    )
  const markers = (): Promise<string[]> =>
    Promise.all(
      [1, 2, 3].map(async (k) => {
        const { body } = await ask(k, 'GET', '/current-api-session/service-updates')
        return (body.data as { lastChangeAt: string }).lastChangeAt
      }),
    )

  await agree(false)
  expect((await ask(2, 'POST', '/sessions', { serviceId })).status).toBe(409)
  const [before = ''] = await markers()
  expect(new Set(await markers())).toEqual(new Set([before]))

  await tell(2, 'corp.test')
  await agree(true)
  const moved = await markers()
  expect(new Set(moved).size).toBe(1)
  expect(moved[0]).not.toBe(before)
  const session = await ask(3, 'POST', '/sessions', { serviceId })
  expect(session.status, session.text).toBe(201)

  await tell(1, 'home.test')
  await agree(false)
  await until('the session has ended everywhere', async () => {
    const lists = await Promise.all([1, 2, 3].map((k) => ask(k, 'GET', '/sessions')))
    return lists.every(({ body }) => (body.data as unknown[]).length === 0)
  })
  const failed = await admin.request(
    'GET',
    `${management}/identities/${identityId}/failed-service-requests`,
  )
  expect(failed.body.data).toMatchObject([{ serviceId, serviceName: 'wiki', sessionType: 'Dial' }])

  // The controller that received the report restarts without it.
  await tell(3, 'corp.test')
  await agree(true)
  cluster.kill(3)
  cluster.run(3)
  await agree(false)
  await tell(2, 'corp.test')
  await agree(true)
  expect((await ask(3, 'POST', '/sessions', { serviceId })).status).toBe(201)
})

const ROUNDS = 20

interface EnrolledRouter {
  readonly id: string
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string }
}

async function enrolledRouter(net: Enrolling): Promise<EnrolledRouter> {
  const { id, token } = await net.router(1)
  const keys = await newRouterKeys(id)
  const { cert, ca } = dataOf(await net.erott(1, token, keys))
  const { privateKeyPem: key } = keys.client
  return { id, tls: { ca: String(ca), cert: String(cert), key } }
}

/** Opens the control channel of a router to one controller. */
async function controlChannel({ id, tls }: EnrolledRouter, k: number): Promise<Channel> {
  const version = { version: 'v2.0.0', revision: 'r', buildDate: '', os: 'linux', arch: 'x64' }
  const { channel } = await dialChannel({
    host: '127.0.0.1',
    port: cluster.port + 100 + k - 1,
    tls,
    protocol: CONTROL_PROTOCOL,
    judge: () => null,
    hello: routerHelloMessage(id, version, null),
    limits: channelLimits,
    clock: systemClock,
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    onMessage: () => null,
    onClose: () => undefined,
  })
  return channel
}

test('a posture report to one controller immediately admits a dial through another controller, 20 times out of 20', async () => {
  const net = await Enrolling.on(cluster)
  const { identityId, token: enrollment } = await net.outstanding(1, { ott: true })
  const request = await newRequest()
  const by = certifiedKey(request, dataOf(await net.ott(1, enrollment, request))['cert'])
  const router = await enrolledRouter(net)
  const name = 'reports and dials'
  const serviceId = await net.make(1, '/services', { name, encryptionRequired: false })
  const checkId = await net.make(1, '/posture-checks', {
    name,
    typeId: 'DOMAIN',
    domains: ['corp.test'],
  })
  const [identityRoles, serviceRoles] = [[`@${identityId}`], [`@${serviceId}`]]
  const [semantic, edgeRouterRoles] = ['AnyOf', [`@${router.id}`]]
  await net.make(1, '/service-policies', {
    name,
    semantic,
    type: 'Dial',
    identityRoles,
    serviceRoles,
    postureCheckRoles: [`@${checkId}`],
  })
  const routersOf = { name, semantic, edgeRouterRoles }
  await net.make(1, '/edge-router-policies', { ...routersOf, identityRoles })
  await net.make(1, '/service-edge-router-policies', { ...routersOf, serviceRoles })
  const apiSessionToken = String(dataOf(await net.logIn(1, by))['token'])
  const headers = net.asOfAnswers()
  const report = async (k: number, domain: string): Promise<void> => {
    const body = { id: checkId, typeId: 'DOMAIN', domain }
    const options = { by, token: apiSessionToken, body, headers }
    dataOf(await net.device(k, 'POST', '/posture-response', options), 201)
  }
  await report(1, 'corp.test')
  const open = { by, token: apiSessionToken, body: { serviceId, type: 'Dial' } }
  const session = dataOf(await net.device(1, 'POST', '/sessions', open), 201)
  const channels = await Promise.all([1, 2, 3].map((k) => controlChannel(router, k)))
  const dial = async (k: number): Promise<number | null> => {
    const message = circuitRequestMessage({
      sessionToken: String(session['token']),
      apiSessionToken,
      identityId,
      fingerprint: fingerprintOf(by),
      instanceId: '',
      peerData: new Map(),
      serviceId: undefined,
    })
    const channel = channels[k - 1]
    if (channel === undefined) throw new Error(`no channel to controller ${k}`)
    const answer = readCircuitResponse(await channel.request(message, 10_000))
    return answer.kind === 'made' ? 0 : answer.code
  }
  try {
    // The service has no host; a controller checks that last.
    const { postureCheckFailed, invalidTerminator } = edgeErrorCode
    const seen: (number | null)[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      const reported = (round % 3) + 1
      const dialed = ((reported + (round % 2)) % 3) + 1
      await report(reported, 'home.test')
      await until('the dial is refused', async () => (await dial(dialed)) === postureCheckFailed)
      await report(reported, 'corp.test')
      seen.push(await dial(dialed))
    }
    expect(seen).toEqual(seen.map(() => invalidTerminator))
  } finally {
    for (const channel of channels) channel.close('the test is over')
  }
})
