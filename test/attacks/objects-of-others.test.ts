import { expect, test } from 'vitest'
import type { KindName } from '../../src/entities/kind-records.ts'
import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { client, management } from '../api/support/caller.ts'
import { user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { made, newIdentity, newService } from '../api/support/network.ts'
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
const [authenticator] = controller.parts.state.findAll('authenticator', 'identityId', 'alice-id')
const victim: Readonly<Record<string, string>> = {
  identity: 'alice-id',
  apiSession: alice.token?.split('.')[1] ?? '',
  authenticator: authenticator?.id ?? '',
  service: serviceId,
  session: await made(alice, `${client}/sessions`, { serviceId, type: 'Dial' }),
  sessionCertificate: await made(alice, `${client}/current-api-session/certificates`, { csr }),
}

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

const records = (): unknown[] =>
  Object.entries(victim).map(([kind, id]) => controller.state.get(kind as KindName, id))

test('a caller can neither see nor change a record of another identity by its ID, on any path with an ID', async () => {
  const before = records()
  expect(before).not.toContain(undefined)
  let asked = 0
  for (const base of [client, management]) {
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
  expect(records()).toEqual(before)
})

test('lists contain only the caller’s own records, for any query', async () => {
  for (const path of ['sessions', 'services', 'current-identity/authenticators']) {
    for (const filter of ['true', `id = "${victim['session']}"`, `id = "${serviceId}"`]) {
      const url = `${client}/${path}?filter=${encodeURIComponent(filter)}`
      const reply = await thief.get(url)
      expect([reply.status, reply.body.data], url).toEqual([200, []])
    }
  }
})

test('an identity can see the records that belong to it', async () => {
  for (const path of [
    `sessions/${victim['session']}`,
    `services/${serviceId}`,
    `current-identity/authenticators/${victim['authenticator']}`,
    `current-api-session/certificates/${victim['sessionCertificate']}`,
  ]) {
    expect((await alice.get(`${client}/${path}`)).status, path).toBe(200)
  }
})
