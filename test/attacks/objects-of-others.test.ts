import { expect, test } from 'vitest'
import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { client, fabric, management } from '../api/support/caller.ts'
import { user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { clientKey } from '../api/support/tls.ts'
import { listed, made, newIdentity, newService } from '../api/support/network.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { csrOf } from './support/certificates.ts'

// The attack: logs, links and responses contain IDs. Somebody with an ordinary session puts IDs of
// others into every path with an ID, to read, change or end their records.

const { controller, root, sessionOf } = await controllerForFile()
const alice = sessionOf('alice-id')
const thief = sessionOf(await newIdentity(root, 'thief'))

const serviceId = await newService(root, 'service of alice', { roleAttributes: ['hers'] })
await made(root, `${management}/service-policies`, {
  name: 'hers',
  type: 'Dial',
  semantic: 'AnyOf',
  identityRoles: ['@alice-id'],
  serviceRoles: ['#hers'],
})
// The thief has everything that a service session requires, except the service.
const edgeRouterRoles = ['#all']
await made(root, `${management}/edge-routers`, { name: 'router' })
await made(root, `${management}/edge-router-policies`, {
  name: 'all routers',
  semantic: 'AnyOf',
  identityRoles: ['#all'],
  edgeRouterRoles,
})
await made(root, `${management}/service-edge-router-policies`, {
  name: 'all ways',
  semantic: 'AnyOf',
  serviceRoles: ['#all'],
  edgeRouterRoles,
})
const csr = await csrOf(generatePrivateKeyPem())
const { certificatePem } = await clientKey(
  controller.authorities.issuing,
  'alice-id',
  controller.clock.nowMs(),
)
const [authenticator] = controller.parts.state.findAll('authenticator', 'identityId', 'alice-id')
const victim: Readonly<Record<string, string>> = {
  identity: 'alice-id',
  apiSession: alice.token?.split('.')[1] ?? '',
  authenticator: authenticator?.id ?? '',
  certificate: await made(root, `${management}/authenticators`, {
    method: 'cert',
    identityId: 'alice-id',
    certPem: parseCertificates(certificatePem)[0].pem,
  }),
  service: serviceId,
  session: await made(alice, `${client}/sessions`, { serviceId, type: 'Dial' }),
  circuit: 'circuit-of-hers',
  sessionCertificate: await made(alice, `${client}/current-api-session/certificates`, { csr }),
}
controller.live.circuits.set('circuit-of-hers', {
  live: {
    clientId: 'alice-id',
    sessionId: victim['session'] ?? '',
    serviceId,
    terminatorId: 't',
    createdAt: controller.clock.nowMs(),
  },
  ends: { id: 'circuit-of-hers', ingress: 'in', egress: 'out' },
  hostId: 'alice-id',
  instanceId: '',
  isOfTunnel: false,
  isHostedByTunnel: false,
  turn: 0,
  path: { routerIds: ['r'], links: [], cost: 1 },
})

/** Bodies that would be accepted for a record of the caller. */
const bodies = [
  { username: user.username, password: 'of the thief', currentPassword: user.password },
  { clientCertCsr: csr },
  { clientCert: '-----BEGIN CERTIFICATE-----' },
  { name: 'taken', encryptionRequired: true },
]

interface Document {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly 'x-permission': string }>>>
  >
}

async function operationsOf(base: string): Promise<{ method: string; path: string }[]> {
  const { payload } = await controller.app.inject(`${base}/openapi.json`)
  const { paths } = JSON.parse(payload) as Document
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, described]) => described['x-permission'] !== 'public' && path.includes('{'))
      .map(([method]) => ({ method: method.toUpperCase(), path: base + path })),
  )
}

test('a caller can neither see nor change a record of another identity by its ID, on any path with an ID', async () => {
  const before = [...controller.state.storedRecords()]
  let asked = 0
  for (const base of [client, management, fabric]) {
    for (const { method, path } of await operationsOf(base)) {
      for (const [kind, id] of Object.entries(victim)) {
        const url = path.replaceAll(/\{\w+\}/g, id)
        for (const body of method === 'GET' || method === 'DELETE' ? [undefined] : bodies) {
          const reply = await thief.call(method, url, body)
          asked += 1
          const what = `${method} ${path} with the ${kind}`
          expect([400, 401, 404, 409], `${what}: ${reply.text}`).toContain(reply.status)
          expect(reply.text, what).not.toMatch(/of alice|"alice/)
        }
      }
    }
  }
  expect(asked).toBeGreaterThan(500)
  expect([...controller.state.storedRecords()]).toEqual(before)
  expect(controller.live.circuits.kept('circuit-of-hers')).toBeDefined()
  // The session of the thief is still valid, so it did not cause the refusals.
  expect((await thief.get(`${client}/current-identity`)).status).toBe(200)
})

test('lists contain only the caller’s own records, for any query', async () => {
  for (const [path, ids] of [
    ['sessions', [victim['session']]],
    ['services', [serviceId]],
    ['current-identity/authenticators', [victim['authenticator'], victim['certificate']]],
    ['current-api-session/certificates', [victim['sessionCertificate']]],
  ] as const) {
    for (const filter of ['true', `id != "x"`, ...ids.map((id) => `id = "${id}"`)]) {
      const url = `${client}/${path}?filter=${encodeURIComponent(filter)}`
      const reply = await thief.get(url)
      const { pagination } = reply.body.meta ?? {}
      expect([reply.status, reply.body.data, pagination?.totalCount], url).toEqual([200, [], 0])
    }
    const own = (await listed(alice, `${client}/${path}`)).map(({ id }) => id)
    expect(own.toSorted()).toEqual(ids.toSorted())
  }
})

test('an identity can see, change and delete the records that belong to it', async () => {
  for (const path of [
    `sessions/${victim['session']}`,
    `services/${serviceId}`,
    `current-identity/authenticators/${victim['authenticator']}`,
    `current-api-session/certificates/${victim['sessionCertificate']}`,
  ]) {
    expect((await alice.get(`${client}/${path}`)).status, path).toBe(200)
  }
  const own = `current-identity/authenticators/${victim['authenticator']}`
  const session = `${client}/sessions/${victim['session']}`
  for (const [method, url, body] of [
    ['PUT', `${client}/${own}`, bodies[0]],
    ['DELETE', session, undefined],
    [
      'DELETE',
      `${client}/current-api-session/certificates/${victim['sessionCertificate']}`,
      undefined,
    ],
  ] as const) {
    const reply = await alice.call(method, url, body)
    expect(reply.status, `${method} ${url}: ${reply.text}`).toBe(200)
  }
  expect(controller.state.get('session', victim['session'] ?? '')).toBeUndefined()
})
