import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CommandKind, EntityWriteSchema } from '../../proto/gen/command_pb.ts'
import { canonicalJson } from '../../src/lib/text/canonical-json.ts'
import { formatUuid, newUuidv7 } from '../../src/lib/text/uuid.ts'
import { CallerOf, management } from './support/caller.ts'
import { sessionCommand, startController, type TestController, user } from './support/controller.ts'
import { commandData } from '../support/commands.ts'

let controller: TestController
let root: CallerOf

beforeEach(async () => {
  controller = await startController({ indexWaitMs: 60 })
  root = new CallerOf(controller)
  root.token = controller.openSession('admin-id')
})

afterEach(async () => {
  await controller.close()
  expect(controller.errors).toEqual([])
})

const services = `${management}/services`
const service = (name: string) => ({ name, encryptionRequired: true })
const requestId = () => formatUuid(newUuidv7(controller.clock.nowMs()))

/**
 * A service that was created on another controller: it is in the log, but not applied on this
 * controller yet.
 */
function serviceElsewhere(id: string, name: string): Uint8Array {
  const json = new TextEncoder().encode(canonicalJson(service(name)))
  const payload = toBinary(
    EntityWriteSchema,
    create(EntityWriteSchema, { entity: 'service', id, json }),
  )
  return commandData(CommandKind.ENTITY_CREATE, payload)
}

test('a response reports its log index and its maximum staleness', async () => {
  const before = await root.get(services)
  expect(before.headers['net-index']).toBe(`3:${controller.machine.appliedIndex}`)
  expect(before.headers['net-stale-ms']).toBe('0')
  controller.cluster.contactMs = 1234.4
  const write = await root.call('POST', services, service('a'))
  expect(write.headers['net-index']).toBe(`3:${controller.machine.appliedIndex}`)
  expect(write.headers['net-index']).not.toBe(before.headers['net-index'])
  expect(write.headers['net-stale-ms']).toBe('1234')
})

test('a read waits for the requested index, and reports a timeout', async () => {
  const next = controller.machine.appliedIndex + 1
  const pending = root.get(`${services}/late-id`, { 'net-min-index': `3:${next}` })
  controller.cluster.apply(serviceElsewhere('late-id', 'late'))
  const reply = await pending
  expect(reply.status).toBe(200)
  expect(reply.headers['net-index']).toBe(`3:${next}`)
  const never = await root.get(services, { 'net-min-index': `3:${next + 5}` })
  expect(never.status).toBe(503)
  expect(never.body.error?.code).toBe('INDEX_NOT_REACHED')
})

test('a controller returns 404 for an unknown id only after the cluster has confirmed that no such record exists', async () => {
  controller.cluster.arriving.push(serviceElsewhere('fresh-id', 'fresh'))
  const rounds = controller.cluster.readRounds
  const reply = await root.get(`${services}/fresh-id`)
  expect(reply.status).toBe(200)
  expect(controller.cluster.readRounds).toBe(rounds + 1)
  expect(reply.headers['net-index']).toBe(`3:${controller.machine.appliedIndex}`)
  expect((await root.get(`${services}/nobody`)).status).toBe(404)
  controller.cluster.hasLeader = false
  expect((await root.get(`${services}/fresh-id`)).status).toBe(200)
  const unknown = await root.get(`${services}/nobody`)
  expect(unknown.status).toBe(503)
  expect(unknown.body.error?.code).toBe('CLUSTER_NO_LEADER')
})

test('a linearizable read reflects every write acknowledged before it', async () => {
  controller.cluster.arriving.push(serviceElsewhere('elsewhere-id', 'elsewhere'))
  expect((await root.get(services)).body.data).toEqual([])
  const reply = await root.get(`${services}?consistency=linearizable`)
  expect(reply.body.data).toHaveLength(1)
  controller.cluster.hasLeader = false
  expect((await root.get(`${services}?consistency=local`)).body.data).toHaveLength(1)
  const refused = await root.get(`${services}?consistency=linearizable`)
  expect(refused.status).toBe(503)
  expect(refused.body.error?.code).toBe('CLUSTER_NO_LEADER')
})

test('a repeated request id takes effect once, and the repetition gets the same response', async () => {
  const headers = { 'net-request-id': requestId() }
  const first = await root.call('POST', services, service('once'), headers)
  const again = await root.call('POST', services, service('once'), headers)
  expect(first.status).toBe(201)
  expect(again.status).toBe(201)
  expect(again.body.data).toEqual(first.body.data)
  expect(controller.machine.count('service')).toBe(1)
  const alias = await root.call('POST', `/edge/management/v1//services/`, service('once'), headers)
  expect(alias.body.data).toEqual(first.body.data)
  const other = await root.call('POST', services, service('other'), headers)
  expect(other.status).toBe(409)
  expect(other.body.error?.code).toBe('REQUEST_ID_REUSED')
  const { id } = first.body.data as { id: string }
  const elsewhere = await root.call('DELETE', `${services}/${id}`, undefined, headers)
  expect(elsewhere.body.error?.code).toBe('REQUEST_ID_REUSED')
  expect(controller.machine.count('service')).toBe(1)
})

test('a request id that is older than 15 minutes is refused', async () => {
  const headers = { 'net-request-id': requestId() }
  controller.clock.advance(16 * 60_000)
  const reply = await root.call('POST', services, service('late'), headers)
  expect(reply.status).toBe(409)
  expect(reply.body.error?.code).toBe('REQUEST_ID_EXPIRED')
})

test('a write with an unknown outcome returns its request id for a retry, or reports that the request had no id', async () => {
  const id = requestId()
  controller.cluster.losesAnswers = true
  const lost = await root.call('POST', services, service('lost'), { 'net-request-id': id })
  expect(lost.status).toBe(503)
  expect(lost.body.error?.code).toBe('OUTCOME_UNKNOWN')
  expect(lost.body.error?.data).toEqual({ netRequestId: id })
  const blind = await root.call('POST', services, service('blind'))
  expect(blind.body.error?.code).toBe('OUTCOME_UNKNOWN')
  expect(blind.body.error?.cause?.['message']).toContain('no net-request-id was sent')
  controller.cluster.losesAnswers = false
  const retry = await root.call('POST', services, service('lost'), { 'net-request-id': id })
  expect(retry.status).toBe(201)
  const { id: made } = retry.body.data as { id: string }
  expect(controller.machine.get('service', made)?.['name']).toBe('lost')
  expect(controller.machine.count('service')).toBe(2)
})

test('the log entry of a log-in contains no digest of the request, which would be a hash of the password, even if the log-in has a request id', async () => {
  const reply = await root.call('POST', `${management}/authenticate?method=password`, user, {
    'net-request-id': requestId(),
  })
  expect(reply.status).toBe(200)
  expect(controller.cluster.proposals.at(-1)?.kind).toBe(CommandKind.SESSION_CREATE)
  expect(controller.cluster.proposals.at(-1)?.request).toBeUndefined()
})

test('without a leader, a list from the local state is returned, and writes, log-ins and log-outs are refused', async () => {
  controller.cluster.hasLeader = false
  expect((await root.get(services)).status).toBe(200)
  const write = await root.call('POST', services, service('x'))
  expect(write.status).toBe(503)
  expect(write.body.error?.code).toBe('CLUSTER_NO_LEADER')
  const logIn = await new CallerOf(controller).logIn(user)
  expect(logIn.status).toBe(503)
  expect(logIn.body.error?.code).toBe('CLUSTER_NO_LEADER')
  const logOut = await root.call('DELETE', `${management}/current-api-session`)
  expect(logOut.body.error?.code).toBe('CLUSTER_NO_LEADER')
})

test('a controller asks the cluster about an unknown session, and accepts its token once the log contains the session that another controller has opened', async () => {
  const token = controller.tokenOf('elsewhereXYZ')
  const roamer = new CallerOf(controller)
  roamer.token = token
  controller.cluster.hasLeader = false
  const nobodyKnows = await roamer.get(services)
  expect(nobodyKnows.status).toBe(503)
  expect(nobodyKnows.body.error?.code).toBe('CLUSTER_NO_LEADER')
  controller.cluster.hasLeader = true
  expect((await roamer.get(services)).status).toBe(401)
  controller.cluster.arriving.push(sessionCommand('elsewhereXYZ', 'admin-id'))
  expect((await roamer.get(services)).status).toBe(200)
})
