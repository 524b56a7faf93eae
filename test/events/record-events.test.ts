import { randomUUID } from 'node:crypto'

import { expect, test } from 'vitest'

import type { ApiSession } from '../../src/entities/kinds/api-session.ts'
import type { Session } from '../../src/entities/kinds/session.ts'
import { entities } from '../../src/entities/registry.ts'
import { apiSessionEvent } from '../../src/events/subjects/api-session.ts'
import { sessionEvent } from '../../src/events/subjects/session.ts'
import { newShortId } from '../../src/lib/random.ts'
import { StateMachine } from '../../src/fsm/state-machine.ts'
import { MemoryStateStore } from '../../src/store/state/memory-state-store.ts'
import { ManualClock } from '../api/support/manual-time.ts'
import { management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { clusterSeenBy, eventsOf } from './support.ts'
import type { ControllerEvents } from '../../src/events/open-events.ts'

const { controller, root } = await controllerForFile()

function replicated({ bus }: ControllerEvents): readonly string[] {
  const texts: string[] = []
  for (let at = bus.ring.first; at < bus.ring.end; at += 1) {
    const event = bus.ring.at(at)
    if (event?.isReplicated === true) {
      texts.push(event.text.replace(/"event_src_id":"[^"]*"/, '"event_src_id":""'))
    }
  }
  return texts
}

test('a record kind with events declares for every stored field whether events show the field', () => {
  const undecided = entities
    .filter(({ isPublished }) => isPublished)
    .flatMap(({ name, fields }) =>
      Object.entries(fields)
        .filter(([, field]) => (field.published === null) !== (field.kind === 'computed'))
        .map(([field]) => `${name}.${field}`),
    )
  expect(undecided).toEqual([])
})

test('every controller derives the same events, in the same order, from one log', async () => {
  const identity = { name: 'laptop', type: 'Default', isAdmin: false, enrollment: { ott: true } }
  const made = await root.call('POST', `${management}/identities`, identity)
  const { id } = made.body.data as { id: string }
  await root.call('PATCH', `${management}/identities/${id}`, { roleAttributes: ['staff'] })
  const session = await root.call('POST', `${management}/authenticate?method=password`, {
    username: 'alice',
    password: 'a staple of alice',
  })
  expect(session.status).toBe(200)
  await root.call('DELETE', `${management}/identities/${id}`)

  const clock = new ManualClock()
  const other = await StateMachine.open({ store: new MemoryStateStore(), clock })
  // A follower of other kinds is registered first, so that the change feed reports the kinds in
  // another order.
  other.follow(['session', 'enrollment', 'identity'], {
    onEntry: () => undefined,
    onReplaced: () => undefined,
  })
  const events = eventsOf(other, clusterSeenBy('ctrl2', controller.cluster), clock)
  for (const entry of controller.cluster.entries) other.apply(entry)
  const theirs = replicated(events)
  const ours = replicated(controller.events)
  expect(ours.length).toBeGreaterThan(10)
  expect(theirs.slice(-ours.length)).toEqual(ours)
  await events.stop()
  await other.close()
})

test('a log-in emits one API session event and one authentication event, with different IDs', async () => {
  const before = controller.events.bus.ring.end
  await root.call('POST', `${management}/authenticate?method=password`, {
    username: 'alice',
    password: 'a staple of alice',
  })
  const { ring } = controller.events.bus
  const made = Array.from(
    { length: ring.end - before },
    (_, at) => JSON.parse(ring.at(before + at)?.text ?? '{}') as Record<string, unknown>,
  )
  expect(made.find((one) => one['namespace'] === 'apiSession')).toMatchObject({
    event_type: 'created',
    type: 'legacy',
    token: '',
    identity_id: 'alice-id',
  })
  expect(made.find((one) => one['namespace'] === 'authentication')).toMatchObject({
    event_type: 'success',
    type: 'password',
    success: true,
    identity_id: 'alice-id',
    auth_policy_id: 'default',
  })
  expect(new Set(made.map((one) => one['event_id'])).size).toBe(made.length)
})

test('session events show whether the session was opened by the REST log-in (legacy) or by OIDC (jwt)', async () => {
  const opened = { id: 'x', identityId: 'i1', ipAddress: '::1' }
  const legacy = { ...opened, clientId: '' } as ApiSession
  const ofOidc = { ...opened, clientId: 'native' } as ApiSession
  const kinds = [legacy, ofOidc].map((one) => apiSessionEvent('created', one, 0).fields()['type'])
  expect(kinds).toEqual(['legacy', 'jwt'])
  const of = { id: 's', type: 'Dial', identityId: 'i1', serviceId: 'svc' }
  const providers = [newShortId(), randomUUID()].map(
    (apiSessionId) =>
      sessionEvent('deleted', { ...of, apiSessionId } as Session, 0).fields()['provider'],
  )
  expect(providers).toEqual(['legacy', 'jwt'])
})

test('an event has the same content whenever it is first read, even if its records have changed in the meantime', async () => {
  const clock = new ManualClock()
  const machine = await StateMachine.open({ store: new MemoryStateStore(), clock })
  const cluster = clusterSeenBy('ctrl3', controller.cluster)
  const early = eventsOf(machine, cluster, clock)
  const late = eventsOf(machine, cluster, clock)
  const readAtOnce: string[] = []
  await useAndForget()
  for (const entry of controller.cluster.entries) {
    machine.apply(entry)
    const { ring } = early.bus
    for (let at = ring.first + readAtOnce.length; at < ring.end; at += 1) {
      readAtOnce.push(ring.at(at)?.text ?? '')
    }
  }
  const readLater = Array.from({ length: late.bus.ring.end }, (_, at) => late.bus.ring.at(at)?.text)
  expect(readLater).toEqual(readAtOnce)
  const texts = readAtOnce.join('\n')
  expect(texts).toContain('"auth_policy_id":"default"')
  expect(texts).toContain('"roleAttributes":["before"]')
  await early.stop()
  await late.stop()
  await machine.close()
})

/** An identity logs in. Then its policy, attributes and session change, and it is deleted. */
async function useAndForget(): Promise<void> {
  const policy = await root.call('POST', `${management}/auth-policies`, {
    name: 'another',
    primary: {
      cert: { allowed: true, allowExpiredCerts: false },
      extJwt: { allowed: false, allowedSigners: [] },
      updb: {
        allowed: true,
        lockoutDurationMinutes: 0,
        maxAttempts: 5,
        minPasswordLength: 5,
        requireMixedCase: false,
        requireNumberChar: false,
        requireSpecialChar: false,
      },
    },
    secondary: { requireTotp: false },
  })
  expect(policy.status, policy.text).toBe(201)
  const { id: authPolicyId } = policy.body.data as { id: string }
  await root.call('PATCH', `${management}/identities/alice-id`, { roleAttributes: ['before'] })
  const login = { username: 'alice', password: 'a staple of alice' }
  const opened = await root.call('POST', `${management}/authenticate?method=password`, login)
  expect(opened.status).toBe(200)
  const change = { roleAttributes: ['after'], authPolicyId }
  const changed = await root.call('PATCH', `${management}/identities/alice-id`, change)
  expect(changed.status, changed.text).toBe(200)
  expect((await root.call('DELETE', `${management}/identities/alice-id`)).status).toBe(200)
}
