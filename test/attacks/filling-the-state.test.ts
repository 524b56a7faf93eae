import { beforeEach, expect, test } from 'vitest'
import type { KindName } from '../../src/entities/kind-records.ts'
import { apiSessionsPerIdentityMax } from '../../src/fsm/sessions/session.ts'
import { serviceSessionLimits } from '../../src/fsm/sessions/service-session.ts'
import { client, management } from '../api/support/caller.ts'
import { user } from '../api/support/controller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { made, newService } from '../api/support/network.ts'

const { controller, root, sessionOf } = await controllerForFile()
const services = 40
const serviceIds: string[] = []
for (let at = 0; at < services; at += 1) serviceIds.push(await newService(root, `service ${at}`))
const roles = { semantic: 'AnyOf', identityRoles: ['#all'] }
const serviceRoles = { serviceRoles: ['#all'] }
await made(root, `${management}/service-policies`, {
  name: 'all dial',
  type: 'Dial',
  ...roles,
  ...serviceRoles,
})
await made(root, `${management}/edge-routers`, { name: 'router' })
const edgeRouterRoles = { edgeRouterRoles: ['#all'] }
await made(root, `${management}/edge-router-policies`, {
  name: 'all routers',
  ...roles,
  ...edgeRouterRoles,
})
await made(root, `${management}/service-edge-router-policies`, {
  name: 'all ways',
  semantic: 'AnyOf',
  ...serviceRoles,
  ...edgeRouterRoles,
})

beforeEach(() => {
  root.token = controller.openSession('admin-id')
})

/** Number of bytes of all records of a kind. */
function bytesOf(kind: KindName): number {
  let bytes = 0
  for (const { record } of controller.state.table(kind).rows.values()) {
    bytes += JSON.stringify(record).length
  }
  return bytes
}

test('an ordinary identity cannot add large tags to its service sessions or its authenticator', async () => {
  const alice = sessionOf('alice-id')
  const tags = { a: 'x'.repeat(9000) }
  const [serviceId = ''] = serviceIds
  const session = await alice.call('POST', `${client}/sessions`, { serviceId, tags })
  expect(session.status).toBe(400)
  expect(session.body.error?.cause?.['field']).toBe('tags')
  const own = `${client}/current-identity/authenticators/alice-updb`
  const patched = await alice.call('PATCH', own, { currentPassword: user.password, tags })
  expect(patched.status).toBe(400)
  expect(bytesOf('session')).toBe(0)
})

test('an ordinary identity can store only a limited amount of tags in its service sessions', async () => {
  const tags = { a: 'x'.repeat(8000) }
  const statuses: number[] = []
  for (let apiSessions = 0; apiSessions < 2; apiSessions += 1) {
    const alice = sessionOf('alice-id')
    for (const serviceId of serviceIds) {
      const reply = await alice.call('POST', `${client}/sessions`, { serviceId, tags })
      statuses.push(reply.status)
    }
  }
  expect(new Set(statuses)).toEqual(new Set([201, 429]))
  const { serviceSessionTagsBytesPerIdentityMax } = serviceSessionLimits
  expect(controller.state.table('session').indexes.weight('alice-id')).toBeLessThanOrEqual(
    serviceSessionTagsBytesPerIdentityMax,
  )
  // The identity can still create sessions without tags, and other identities have separate quotas.
  const [serviceId = ''] = serviceIds
  const plain = await sessionOf('alice-id').call('POST', `${client}/sessions`, { serviceId })
  expect(plain.status).toBe(201)
  const other = await sessionOf('admin-id').call('POST', `${client}/sessions`, { serviceId, tags })
  expect(other.status).toBe(201)
})

test('an ordinary identity can open only a limited number of API sessions', async () => {
  const open = controller.state.table('apiSession').indexes
  while (open.ids('identityId', 'alice-id').size < apiSessionsPerIdentityMax) sessionOf('alice-id')
  const reply = await sessionOf('alice-id').logIn(user)
  expect(reply.status).toBe(429)
  expect(reply.body.error?.cause?.['message']).toMatch(/1000 API sessions/)
  expect(open.ids('identityId', 'alice-id').size).toBe(apiSessionsPerIdentityMax)
})
