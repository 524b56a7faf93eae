import { beforeAll, expect, test } from 'vitest'
import { type Client, until } from '../support/client.ts'
import type { TestCluster } from '../support/cluster.ts'
import { sharedCluster } from '../support/shared-cluster.ts'

// Goal: a posture report to one controller counts on all of them, as long as that controller runs.
// Method: three real processes; reports and queries go to different ones, and the one that received
// the report is killed.

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

test('a posture report to one controller admits the machine on another, shuts it out on all, and is repeated after a crash', async () => {
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

  // The controller that received the report comes back without it.
  await tell(3, 'corp.test')
  await agree(true)
  cluster.kill(3)
  cluster.run(3)
  await agree(false)
  await tell(2, 'corp.test')
  await agree(true)
  expect((await ask(3, 'POST', '/sessions', { serviceId })).status).toBe(201)
})
