import { describe, expect, test } from 'vitest'
import type { ModelEvent } from '../../src/ports/router-model.ts'
import { create } from '@bufbuild/protobuf'
import { CommandKind, SessionActorSchema } from '../../proto/gen/command_pb.ts'
import { CallerOf, client, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { made, newIdentity, newService } from '../api/support/network.ts'
import { Restore, contentOf } from '../fsm/support/restoring.ts'
import { formedState, identity, policy, service } from '../fsm/support/log.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import type { Actor } from '../../src/ports/actor.ts'
import { FEATURE_LEVEL } from '../../src/ports/feature-level.ts'

// The attack: a person whose access ends at a certain time keeps it: by extending the expiry, by an
// outdated write of a tool that does not know expiry times, through a router to which no change is
// sent, or by a restore.

const HOUR_MS = 60 * 60_000
const { controller, root, sessionOf } = await controllerForFile()
const { clock, scheduler } = controller
const { limits } = controller.parts
const after = (ms: number): string => new Date(clock.nowMs() + ms).toISOString()

async function pass(ms: number): Promise<void> {
  clock.advance(ms)
  scheduler.run(limits.accessEndMs)
  for (let turn = 0; turn < 10; turn += 1) await new Promise((go) => setImmediate(go))
  root.token = controller.openSession('admin-id')
}

let serial = 0

/**
 * A person who may dial a service until the permission expires, and who may also change identities.
 */
async function contractor(permissions: readonly string[] = []) {
  serial += 1
  const attribute = `contractors-${serial}`
  const serviceId = await newService(root, attribute, { roleAttributes: [attribute] })
  const identityId = await newIdentity(root, attribute, {
    roleAttributes: [attribute],
    roleAttributesExpireAt: { [attribute]: after(HOUR_MS) },
    permissions,
  })
  const policyId = await made(root, `${management}/service-policies`, {
    name: attribute,
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: [`#${attribute}`],
    serviceRoles: [`@${serviceId}`],
    expiresAt: after(2 * HOUR_MS),
  })
  const caller = sessionOf(identityId)
  return { attribute, serviceId, identityId, policyId, caller }
}

async function seesService(identityId: string): Promise<boolean> {
  const reply = await sessionOf(identityId).get(`${client}/services`)
  return (reply.body.data as readonly unknown[]).length > 0
}

describe('A person with time-limited access', () => {
  const changes: Readonly<
    Record<string, (of: Awaited<ReturnType<typeof contractor>>) => readonly object[]>
  > = {
    'a later expiry': ({ attribute }) => [
      { roleAttributesExpireAt: { [attribute]: after(100 * HOUR_MS) } },
    ],
    'access without an expiry': ({ attribute }) => [
      { roleAttributesExpireAt: { [attribute]: null } },
    ],
    'the attribute without an expiry, by removing and adding it again': ({ attribute }) => [
      { roleAttributes: [] },
      { roleAttributes: [attribute] },
    ],
  }

  test.each(Object.keys(changes))('cannot give itself %s', async (change) => {
    const of = await contractor(['identity.update'])
    expect(await seesService(of.identityId)).toBe(true)
    const before = controller.state.get('identity', of.identityId)
    const path = `${management}/identities/${of.identityId}`
    const writer = new CallerOf(controller)
    writer.token = controller.openSession(of.identityId)
    const statuses: number[] = []
    for (const body of changes[change]?.(of) ?? []) {
      statuses.push((await writer.call('PATCH', path, body)).status)
    }
    // After the refusal, a request with the unchanged attributes changes nothing.
    expect(statuses[0]).toBe(401)
    expect(controller.state.get('identity', of.identityId)).toEqual({
      ...before,
      revision: expect.any(Number) as number,
      updatedAt: expect.any(Number) as number,
    })
    await pass(HOUR_MS)
    expect(await seesService(of.identityId)).toBe(false)
  })

  test('does not regain expired access when a tool that does not know expiries writes an older copy of the records', async () => {
    const { attribute, identityId, policyId, serviceId } = await contractor()
    const identityPath = `${management}/identities/${identityId}`
    const policyPath = `${management}/service-policies/${policyId}`
    expect(await seesService(identityId)).toBe(true)
    await pass(HOUR_MS)
    const stale = { name: attribute, type: 'Device', isAdmin: false, roleAttributes: [attribute] }
    expect((await root.call('PUT', identityPath, stale)).status).toBe(200)
    expect(await seesService(identityId)).toBe(false)
    const ends = { roleAttributesExpireAt: { [attribute]: null } }
    await root.call('PATCH', identityPath, ends)
    await root.call('PATCH', identityPath, { roleAttributes: [attribute] })
    expect(await seesService(identityId)).toBe(true)
    await pass(HOUR_MS)
    expect(await seesService(identityId)).toBe(false)
    const roles = { identityRoles: [`#${attribute}`], serviceRoles: [`@${serviceId}`] }
    const body = { name: attribute, type: 'Dial', semantic: 'AnyOf', ...roles }
    expect((await root.call('PUT', policyPath, body)).status).toBe(200)
    expect(await seesService(identityId)).toBe(false)
  })
})

test('the data model for routers reports the removal of access when a role attribute or a policy expires', async () => {
  const { policyId, identityId } = await contractor()
  const events: ModelEvent[] = []
  const stop = controller.machine.routerModel.follow({
    onEntry: (_index, changed) => events.push(...changed),
    onReplaced: () => undefined,
  })
  await pass(HOUR_MS)
  expect(events.filter(({ kind }) => kind === 'members')).toEqual([
    { kind: 'members', policyId, of: 'identity', ids: [identityId], isAdded: false },
  ])
  events.length = 0
  await pass(HOUR_MS)
  stop()
  expect(events.map((event) => ('action' in event ? [event.action, event.kind] : event))).toEqual([
    ['delete', 'servicePolicy'],
  ])
  const whole = [...controller.machine.routerModel.all()]
  expect(whole.some((event) => 'value' in event && event.value.id === policyId)).toBe(false)
})

test('a caller with a session cannot propose the log entry that removes expired access', () => {
  const { state, log } = formedState()
  log.raiseLevel()
  log.logIn('s1')
  const payload = new Uint8Array()
  const claim = { identityId: 'admin', sessionId: 's1', permission: 'admin' }
  const actor = { case: 'session', value: create(SessionActorSchema, claim) } as Actor
  expect(log.command(CommandKind.ACCESS_END, payload, { level: 3, actor }).outcome).toMatchObject({
    ok: false,
    code: 'UNAUTHORIZED',
  })
  expect(state.table('accessEnd').rows.size).toBe(0)
})

test('restoring a backup from before an expiry does not grant the expired access again', () => {
  const { state, log } = formedState()
  log.raiseLevel()
  const end = log.timeMs + HOUR_MS
  log.create('service', 'wiki', service('wiki', ['wikis']))
  log.create('identity', 'ann', {
    ...identity('ann', ['a', 'b']),
    roleAttributesExpireAt: { b: new Date(end).toISOString() },
  })
  log.create('servicePolicy', 'p', policy('p', ['#a'], ['#wikis'], { expiresAt: end }))
  log.create('servicePolicy', 'q', policy('q', ['#b'], ['#wikis'], { type: 'Bind' }))
  const reader = new StateReader(state, clock)
  expect(reader.permissions('ann', 'wiki')).toEqual(['Bind', 'Dial'])
  const content = contentOf(state)
  const restore = new Restore(log, content)
  log.timeMs = end
  log.endAccess()
  expect(reader.permissions('ann', 'wiki')).toEqual([])
  restore.begin({ featureLevel: FEATURE_LEVEL })
  for (const number of content.chunks.keys()) restore.chunk(number)
  expect(restore.end().ok).toBe(true)
  expect(reader.permissions('ann', 'wiki')).toEqual([])
})
