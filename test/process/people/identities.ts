import type { KeyObject } from 'node:crypto'
import { connect } from 'node:tls'
import { decodeJwt, jwtVerify } from 'jose'
import { beforeAll, expect, test } from 'vitest'
import { type Answer, type Client, until } from '../support/client.ts'
import type { TestCluster } from '../support/cluster.ts'
import { sharedCluster } from '../support/shared-cluster.ts'

// Goal: if an identity is admitted on one controller, all controllers know it and show it the same
// records; if it is excluded on one, all exclude it. Method: three real processes; each step uses
// another one than the previous step.

let cluster: TestCluster
let admins: Client[]
beforeAll(async () => {
  cluster = sharedCluster()
  admins = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
})

const management = '/edge/management/v1'
const user = { username: 'second user', password: 'a password of its own' }
let index = ''

/**
 * Sends a request as an administrator to controller k, which reflects all earlier requests in its
 * answer.
 */
async function ask(k: number, method: string, path: string, body?: unknown): Promise<Answer> {
  const client = admins[k - 1]
  if (client === undefined) throw new Error('no such controller')
  const answer = await client.request(method, management + path, {
    ...(body === undefined ? {} : { body }),
    headers: index === '' ? {} : { 'net-min-index': index },
  })
  index = String(answer.headers['net-index'])
  return answer
}

async function make(k: number, path: string, body: unknown): Promise<string> {
  const answer = await ask(k, 'POST', path, body)
  expect(answer.status, answer.text).toBe(201)
  return (answer.body.data as { id: string }).id
}

async function own(client: Client, path: string): Promise<Answer> {
  return client.request('GET', `/edge/client/v1${path}`, { headers: { 'net-min-index': index } })
}

test('an identity whose password was set on one controller can log in on another, sees exactly its services on all, and is refused by all once it is disabled', async () => {
  const identityId = await make(1, '/identities', { name: 'second', type: 'User', isAdmin: false })
  await make(2, '/authenticators', { identityId, method: 'updb', ...user })
  const configId = await make(3, '/configs', {
    name: 'printer address',
    configTypeId: 'g7cIWbcGg',
    data: { protocols: ['tcp'], addresses: ['printer'], portRanges: [{ low: 631, high: 631 }] },
  })
  const serviceId = await make(1, '/services', {
    name: 'printer',
    encryptionRequired: true,
    configs: [configId],
  })
  await make(2, '/services', { name: 'vault', encryptionRequired: true })
  await make(3, '/service-policies', {
    name: 'second prints',
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: [`@${identityId}`],
    serviceRoles: [`@${serviceId}`],
  })

  const clients = [1, 2, 3].map((k) => cluster.client(k))
  const [first, second, third] = clients
  if (first === undefined || second === undefined || third === undefined) throw new Error('three')
  await until('log in', async () => {
    const answer = await first.request('POST', '/edge/client/v1/authenticate?method=password', {
      body: { ...user, configTypes: ['intercept.v1'] },
    })
    if (answer.status === 200) first.token = (answer.body.data as { token: string }).token
    return answer.status === 200
  })
  second.token = first.token
  third.token = first.token
  for (const client of clients) {
    const listed = await own(client, '/services?limit=500')
    expect(listed.body.data).toMatchObject([
      {
        id: serviceId,
        permissions: ['Dial'],
        config: { 'intercept.v1': { addresses: ['printer'] } },
      },
    ])
    expect((await client.request('GET', `${management}/identities`)).status).toBe(401)
  }

  const pairs = [{ serviceId, configId }]
  expect((await ask(2, 'POST', `/identities/${identityId}/service-configs`, pairs)).status).toBe(
    200,
  )
  expect((await ask(3, 'DELETE', `/identities/${identityId}/service-configs`, pairs)).status).toBe(
    200,
  )
  expect((await ask(1, 'GET', `/identities/${identityId}/service-configs`)).body.data).toEqual([])

  const disable = { durationMinutes: 0 }
  expect((await ask(2, 'POST', `/identities/${identityId}/disable`, disable)).status).toBe(200)
  for (const client of clients) expect((await own(client, '/services')).status).toBe(401)
  expect(cluster.logs()).not.toMatch(/argon2|a password of its own/)
})

test('a JSON schema whose evaluation never ends blocks neither its controller nor the cluster', async () => {
  const typeId = await make(1, '/config-types', {
    name: 'endless',
    schema: { type: 'object', properties: { name: { type: 'string', pattern: '^(a+)+$' } } },
  })
  const data = { name: `${'a'.repeat(60)}!` }
  // A controller without enough processor time to check the value answers 503, and the test repeats
  // the request.
  const judged = async (): Promise<Answer> => {
    for (;;) {
      const answer = await ask(1, 'POST', '/configs', { name: 'bomb', configTypeId: typeId, data })
      if (answer.status !== 503) return answer
    }
  }
  const refused = judged()
  const body = (n: number): object => ({ name: `meanwhile ${n}`, encryptionRequired: true })
  const [admin] = admins
  if (admin === undefined) throw new Error('not logged in')
  const answers = await Promise.all(
    Array.from({ length: 20 }, async (_, n) =>
      admin.request('POST', `${management}/services`, { body: body(n) }),
    ),
  )
  for (const { status } of answers) expect(status).toBe(201)
  const answer = await refused
  expect(answer.status, answer.text).toBe(400)
  expect(answer.body.error?.cause).toMatchObject({ field: 'data' })
  await make(1, '/configs', { name: 'fits', configTypeId: typeId, data: { name: 'aaa' } })
})

test('a router created on one controller has a valid enrollment token on all, signed by the TLS key of the controller that created the token', async () => {
  const id = await make(2, '/edge-routers', { name: 'gate', isTunnelerEnabled: true })
  for (const k of [1, 2, 3]) {
    const { data } = (await ask(k, 'GET', `/edge-routers/${id}`)).body
    const { enrollmentJwt, enrollmentToken } = data as Record<string, string>
    // Verifies the token as a client does: the client trusts only the server at the address in the
    // token.
    const { iss = '' } = decodeJwt(String(enrollmentJwt))
    expect(iss).toBe(cluster.client(2).baseUrl)
    const { payload } = await jwtVerify(String(enrollmentJwt), await keyAt(new URL(iss)))
    expect(payload).toMatchObject({ sub: id, em: 'erott', jti: enrollmentToken })
    expect((await ask(k, 'GET', `/identities/${id}`)).body.data).toMatchObject({ typeId: 'Router' })
  }
  expect((await ask(3, 'POST', `/edge-routers/${id}/re-enroll`)).status).toBe(200)
  const { data } = (await ask(1, 'GET', `/edge-routers/${id}`)).body
  const { enrollmentJwt } = data as Record<string, string>
  expect(decodeJwt(String(enrollmentJwt)).iss).toBe(cluster.client(3).baseUrl)
  expect((await ask(2, 'DELETE', `/edge-routers/${id}`)).status).toBe(200)
  expect((await ask(3, 'GET', `/identities/${id}`)).status).toBe(404)
})

/** The public key of the certificate that a server presents. */
function keyAt({ hostname, port }: URL): Promise<KeyObject> {
  return new Promise((resolve, reject) => {
    const socket = connect(
      { host: hostname, port: Number(port), rejectUnauthorized: false },
      () => {
        const key = socket.getPeerX509Certificate()?.publicKey
        socket.destroy()
        if (key === undefined) reject(new Error('the server shows no certificate'))
        else resolve(key)
      },
    )
    socket.on('error', reject)
  })
}
