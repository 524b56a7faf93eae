import { beforeEach, expect, test } from 'vitest'

import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../src/pki/authority/certificate-request.ts'
import { noRouterStatuses } from '../../src/ports/router-status.ts'
import { controllerForFile } from './support/for-file.ts'
import { client, management } from './support/caller.ts'
import { made, newIdentity, shown } from './support/network.ts'

// Goal: an administrator whose clients find no edge router reads in the log that the routers have
// no edge listener.

const warned: object[] = []
const logger = {
  warn: (fields: object, message: string) => void warned.push({ ...fields, message }),
  error: () => undefined,
}
const { controller, root, sessionOf } = await controllerForFile({}, undefined, { logger })

interface Reported {
  readonly hostname: string
  readonly protocols: Readonly<Record<string, string>>
}
const reported = new Map<string, Reported>()
controller.machine.routers = {
  ...noRouterStatuses,
  of: (id) => {
    const version = { version: 'v1', revision: '', buildDate: '', os: '', arch: '' }
    const status = reported.get(id)
    const none = { capabilities: [], linkListeners: [], interfaces: [] }
    return status === undefined ? null : { ...status, version, ...none }
  },
  hasConnection: () => null,
  dialCost: () => 0,
}
beforeEach(() => {
  warned.length = 0
})

const router = await made(root, `${management}/edge-routers`, {
  name: 'links-only',
  roleAttributes: ['public'],
})
const { enrollmentToken: token } = await shown(root, `${management}/edge-routers/${router}`)
const [clientCsr, serverCsr] = await Promise.all(
  [router, 'links-only'].map((id) =>
    createCertificateRequest({ privateKeyPem: generatePrivateKeyPem(), id }),
  ),
)
const enrolled = await root.call('POST', `${client}/enroll/erott`, { token, clientCsr, serverCsr })
expect(enrolled.status, enrolled.text).toBe(200)
await made(root, `${management}/edge-router-policies`, {
  name: 'all',
  semantic: 'AnyOf',
  identityRoles: ['#all'],
  edgeRouterRoles: ['#all'],
})

test('one warning names the identity and all its routers if none of these routers has an edge listener', async () => {
  const identity = await newIdentity(root, 'laptop')
  const laptop = sessionOf(identity)
  reported.set(router, { hostname: 'host', protocols: {} })
  for (let asked = 0; asked < 3; asked += 1) {
    expect((await laptop.get(`${client}/current-identity/edge-routers`)).status).toBe(200)
  }
  expect(warned).toEqual([
    {
      identityId: identity,
      identity: 'laptop',
      routers: ['links-only'],
      message:
        'a client cannot connect to any of its edge routers: none that is online has an edge listener; add one with binding: edge',
    },
  ])
})

test.each<readonly [string, Reported | null]>([
  ['is offline', null],
  ['has not reported its listeners yet', { hostname: '', protocols: {} }],
  ['has an edge listener', { hostname: 'host', protocols: { tls: 'tls://r:3022' } }],
])('a request for the edge routers causes no warning if the router %s', async (what, status) => {
  if (status === null) reported.delete(router)
  else reported.set(router, status)
  const phone = sessionOf(await newIdentity(root, `phone that ${what}`))
  expect((await phone.get(`${client}/current-identity/edge-routers`)).status).toBe(200)
  expect(warned).toEqual([])
})

test('twelve identities whose routers have no edge listener cause at most ten warnings', async () => {
  reported.set(router, { hostname: 'host', protocols: {} })
  for (let each = 0; each < 12; each += 1) {
    const caller = sessionOf(await newIdentity(root, `sensor-${each}`))
    await caller.get(`${client}/current-identity/edge-routers`)
  }
  expect(warned.length).toBeGreaterThan(0)
  expect(warned.length).toBeLessThanOrEqual(10)
})
