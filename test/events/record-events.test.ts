import { expect, test } from 'vitest'

import { entities, entityNamed } from '../../src/entities/registry.ts'
import { publishedRecords, unpublishedRecords } from '../../src/events/published-records.ts'
import { StateMachine } from '../../src/fsm/machine.ts'
import { MemoryStateStore } from '../../src/store/memory-state-store.ts'
import { ManualClock } from '../api/support/manual-time.ts'
import { management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { eventsOf } from './support.ts'
import type { Events } from '../../src/events/open-events.ts'

const { controller, root } = await controllerForFile()

function replicated({ bus }: Events): readonly string[] {
  const texts: string[] = []
  for (let at = bus.ring.first; at < bus.ring.end; at += 1) {
    const event = bus.ring.at(at)
    if (event?.isReplicated === true) {
      texts.push(event.text.replace(/"event_src_id":"[^"]*"/, '"event_src_id":""'))
    }
  }
  return texts
}

test('every kind of record, and every stored field, is published or withheld on purpose', () => {
  const tables = entities.filter(({ name, table }) => table === name).map(({ name }) => name)
  const decided = [...Object.keys(publishedRecords), ...unpublishedRecords]
  expect(decided.toSorted()).toEqual(tables.toSorted())
  for (const [kind, { shown, withheld }] of Object.entries(publishedRecords)) {
    const stored = Object.entries(entityNamed(kind).fields)
      .filter(([name, field]) => field.kind !== 'computed' && name !== 'tags')
      .map(([name]) => name)
    expect([...shown, ...withheld].toSorted(), kind).toEqual(stored.toSorted())
  }
})

test('one log gives the same events, in the same order, on every controller', async () => {
  const identity = { name: 'laptop', type: 'Default', isAdmin: false, enrollment: { ott: true } }
  const made = await root.call('POST', `${management}/identities`, identity)
  const { id } = made.body.data as { id: string }
  await root.call('PATCH', `${management}/identities/${id}`, { roleAttributes: ['staff'] })
  const session = await root.call('POST', `${management}/authenticate?method=password`, {
    ...{ username: 'alice', password: 'a staple of alice' },
  })
  expect(session.status).toBe(200)
  await root.call('DELETE', `${management}/identities/${id}`)

  const clock = new ManualClock()
  const other = await StateMachine.open({ store: new MemoryStateStore(), clock })
  // Somebody follows other kinds before: the order in which the feed gives the kinds differs then.
  other.follow(['session', 'enrollment', 'identity'], {
    ...{ onEntry: () => undefined, onReplaced: () => undefined },
  })
  const events = eventsOf(
    other,
    Object.assign(Object.create(controller.cluster), { selfId: 'ctrl2' }),
    clock,
  )
  for (const entry of controller.cluster.entries) other.apply(entry)
  const theirs = replicated(events)
  const ours = replicated(controller.events)
  expect(ours.length).toBeGreaterThan(10)
  expect(theirs.slice(-ours.length)).toEqual(ours)
  await events.stop()
  await other.close()
})

test('a log-in is an API session and an authentication, under ids of their own', async () => {
  const before = controller.events.bus.ring.end
  await root.call('POST', `${management}/authenticate?method=password`, {
    ...{ username: 'alice', password: 'a staple of alice' },
  })
  const { ring } = controller.events.bus
  const made = Array.from(
    { length: ring.end - before },
    (_, at) => JSON.parse(ring.at(before + at)?.text ?? '{}') as Record<string, unknown>,
  )
  expect(made.find((one) => one['namespace'] === 'apiSession')).toMatchObject({
    ...{ event_type: 'created', type: 'legacy', token: '', identity_id: 'alice-id' },
  })
  expect(made.find((one) => one['namespace'] === 'authentication')).toMatchObject({
    ...{ event_type: 'success', type: 'password', success: true, identity_id: 'alice-id' },
    auth_policy_id: 'default',
  })
  expect(new Set(made.map((one) => one['event_id'])).size).toBe(made.length)
})
