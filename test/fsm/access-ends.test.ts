import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import {
  CommandKind,
  LogTimeResetSchema,
  ServiceSessionCreateSchema,
} from '../../proto/gen/command_pb.ts'
import { accessEndRecordId } from '../../src/entities/kinds/access-end.ts'
import { accessExpiryLimits, nextAccessExpiryMs } from '../../src/fsm/expiry/expire-access.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import { formedState, identity, policy, service, startMs } from './support/log.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const endMs = startMs + 7 * DAY_MS

const textOf = (ms: number): string => new Date(ms).toISOString()
const clock = { nowMs: () => startMs, monotonicMs: () => 0 }

/**
 * The identity Ann has the attribute contractors; a policy permits #contractors to dial the service
 * wiki.
 */
function network(ends: { readonly policy?: JsonObject; readonly identity?: JsonObject } = {}) {
  const { state, log } = formedState()
  log.raiseLevel()
  const all = { semantic: 'AnyOf', edgeRouterRoles: ['#all'] }
  log.create('edgeRouter', 'r1', { name: 'r1', roleAttributes: [] })
  log.create('edgeRouterPolicy', 'e1', { name: 'e1', identityRoles: ['#all'], ...all })
  log.create('serviceEdgeRouterPolicy', 'f1', { name: 'f1', serviceRoles: ['#all'], ...all })
  log.create('service', 'wiki', service('wiki', ['wikis']))
  log.create('identity', 'ann', { ...identity('ann', ['contractors']), ...ends.identity })
  log.create('servicePolicy', 'p', policy('p', ['#contractors'], ['#wikis'], ends.policy))
  log.logIn('as', 'ann', '')
  const reader = new StateReader(state, clock)
  const rights = (): readonly string[] => reader.permissions('ann', 'wiki')
  const dial = (): boolean => {
    const message = { id: `ss${log.entries.length}`, apiSessionId: 'as', serviceId: 'wiki' }
    const asked = create(ServiceSessionCreateSchema, { ...message, type: 'Dial' })
    const payload = toBinary(ServiceSessionCreateSchema, asked)
    return log.command(CommandKind.SERVICE_SESSION_CREATE, payload).outcome?.ok === true
  }
  const sessions = (): number => state.table('session').rows.size
  return { state, log, reader, rights, dial, sessions }
}

const policyEnd = { policy: { expiresAt: endMs } }
const attributeEnd = {
  identity: { roleAttributesExpireAt: { contractors: textOf(endMs) } },
}

describe.each([
  ['A service policy', policyEnd],
  ['A role attribute', attributeEnd],
])('%s with an expiry', (_name, ends) => {
  test('gives access until log time reaches the expiry, and none from then on', () => {
    const { log, rights, dial, sessions, reader } = network(ends)
    expect(dial()).toBe(true)
    log.timeMs = endMs - 1
    log.endAccess()
    expect([rights(), sessions()]).toEqual([['Dial'], 1])
    log.timeMs = endMs
    log.endAccess()
    expect([rights(), sessions()]).toEqual([[], 0])
    expect(dial()).toBe(false)
    expect(reader.lastChangeAt('as')).toBe(endMs)
  })

  test('causes one audit record when it expires, with the changed record and its fields', () => {
    const { log } = network(ends)
    log.timeMs = endMs
    const record =
      ends === policyEnd
        ? { entity: 'servicePolicy', entityId: 'p', fields: ['isEnded'] }
        : { entity: 'identity', entityId: 'ann', fields: ['roleAttributes'] }
    expect(log.endAccess().audit).toMatchObject({
      action: 'access-end',
      outcome: 'done',
      ...record,
    })
    expect(log.endAccess()).toMatchObject({ outcome: { ok: true }, audit: null })
  })
})

describe('The expiry of a service policy', () => {
  test('must be in the future, unless the write does not change it', () => {
    const { log } = network(policyEnd)
    const past = { expiresAt: startMs }
    const fault = { field: 'expiresAt', reason: 'expiresAt must be in the future' }
    const refusal = { ok: false, code: 'COULD_NOT_VALIDATE', fault }
    expect(log.create('servicePolicy', 'q', policy('q', [], [], past))).toMatchObject(refusal)
    expect(log.patch('servicePolicy', 'p', past)).toMatchObject(refusal)
    log.timeMs = endMs
    log.endAccess()
    expect(log.patch('servicePolicy', 'p', { expiresAt: endMs, name: 'kept' }).ok).toBe(true)
  })

  test('stays the same if a PUT or PATCH omits it, both before and after it has passed', () => {
    const { log, state } = network(policyEnd)
    const stock = policy('p', ['#contractors', '#others'], ['#wikis'])
    expect(log.replace('servicePolicy', 'p', stock).ok).toBe(true)
    expect(state.get('servicePolicy', 'p')).toMatchObject({ expiresAt: endMs, isEnded: false })
    log.timeMs = endMs
    log.endAccess()
    expect(log.replace('servicePolicy', 'p', stock).ok).toBe(true)
    expect(log.patch('servicePolicy', 'p', { name: 'q' }).ok).toBe(true)
    expect(state.get('servicePolicy', 'p')).toMatchObject({ expiresAt: endMs, isEnded: true })
  })

  test.each([
    ['extended', endMs + DAY_MS],
    ['removed', null],
  ])(
    'can be %s after it has passed, and then the policy grants access again',
    (_name, expiresAt) => {
      const { log, rights, state } = network(policyEnd)
      log.timeMs = endMs
      log.endAccess()
      expect(log.patch('servicePolicy', 'p', { expiresAt }).ok).toBe(true)
      expect(state.get('servicePolicy', 'p')).toMatchObject({ expiresAt, isEnded: false })
      expect(rights()).toEqual(['Dial'])
    },
  )

  test('takes effect at any write to the policy, even before the log entry that removes the expired access', () => {
    const { log, rights } = network(policyEnd)
    log.timeMs = endMs
    log.patch('servicePolicy', 'p', { name: 'q' })
    expect(rights()).toEqual([])
  })
})

describe('The expiry of a role attribute', () => {
  const identityOf = (state: ReturnType<typeof network>['state']) => {
    const found = state.get('identity', 'ann')
    const { roleAttributes, roleAttributesExpireAt, roleAttributeEndsAt } = found ?? {}
    return { roleAttributes, roleAttributesExpireAt, roleAttributeEndsAt }
  }

  test('is kept by writes from clients that do not know the field', () => {
    const { log, state } = network(attributeEnd)
    const before = identityOf(state)
    log.replace('identity', 'ann', identity('ann', ['contractors']))
    log.patch('identity', 'ann', { roleAttributes: ['contractors'] })
    expect(identityOf(state)).toEqual(before)
    expect(before).toEqual({
      roleAttributes: ['contractors'],
      roleAttributesExpireAt: { contractors: textOf(endMs) },
      roleAttributeEndsAt: endMs,
    })
  })

  test('is removed together with its attribute', () => {
    const { log, state } = network(attributeEnd)
    log.patch('identity', 'ann', { roleAttributes: [] })
    log.patch('identity', 'ann', { roleAttributes: ['contractors'] })
    expect(identityOf(state)).toEqual({
      roleAttributes: ['contractors'],
      roleAttributesExpireAt: {},
      roleAttributeEndsAt: null,
    })
  })

  test('removes the attribute at the given time, and a client that writes the attribute back does not restore it', () => {
    const { log, state, rights } = network(attributeEnd)
    log.timeMs = endMs
    log.endAccess()
    const ended = {
      roleAttributes: [],
      roleAttributesExpireAt: { contractors: textOf(endMs) },
      roleAttributeEndsAt: null,
    }
    expect(identityOf(state)).toEqual(ended)
    expect(log.replace('identity', 'ann', identity('ann', ['contractors'])).ok).toBe(true)
    expect(log.patch('identity', 'ann', { roleAttributes: ['contractors'] }).ok).toBe(true)
    expect([identityOf(state), rights()]).toEqual([ended, []])
  })

  test('restores the attribute when it is changed to a later time', () => {
    const { log, state, rights } = network(attributeEnd)
    log.timeMs = endMs
    log.endAccess()
    const later = { contractors: textOf(endMs + DAY_MS) }
    expect(log.patch('identity', 'ann', { roleAttributesExpireAt: later }).ok).toBe(true)
    expect(identityOf(state)).toEqual({
      roleAttributes: ['contractors'],
      roleAttributesExpireAt: later,
      roleAttributeEndsAt: endMs + DAY_MS,
    })
    expect(rights()).toEqual(['Dial'])
  })

  test('is removed by null; after the attribute has expired, null allows a client to assign the attribute again', () => {
    const { log, state } = network(attributeEnd)
    const none = { roleAttributesExpireAt: { contractors: null } }
    log.patch('identity', 'ann', none)
    expect(identityOf(state)).toEqual({
      roleAttributes: ['contractors'],
      roleAttributesExpireAt: {},
      roleAttributeEndsAt: null,
    })
    log.patch('identity', 'ann', attributeEnd.identity)
    log.timeMs = endMs
    log.endAccess()
    log.patch('identity', 'ann', none)
    expect(identityOf(state).roleAttributes).toEqual([])
    log.patch('identity', 'ann', { roleAttributes: ['contractors'] })
    expect(identityOf(state).roleAttributes).toEqual(['contractors'])
  })

  test.each([
    ['must be a time in UTC', { contractors: 'soon' }],
    ['must be in the future', { contractors: textOf(startMs) }],
    ['is not in roleAttributes', { others: textOf(endMs) }],
  ])('is refused with the reason that it %s', (reason, ends) => {
    const { log } = network()
    expect(log.patch('identity', 'ann', { roleAttributesExpireAt: ends })).toMatchObject({
      ok: false,
      code: 'COULD_NOT_VALIDATE',
      fault: {
        field: expect.stringContaining('roleAttributesExpireAt.'),
        reason: expect.stringContaining(reason),
      },
    })
  })

  test('removes only its own attribute, and no other', () => {
    const { log, state } = network(attributeEnd)
    log.patch('identity', 'ann', { roleAttributes: ['contractors', '__proto__', 'staff'] })
    const proto = JSON.parse(`{"__proto__":"${textOf(endMs + 1)}"}`) as JsonObject
    log.patch('identity', 'ann', { roleAttributesExpireAt: proto })
    log.timeMs = endMs
    log.endAccess()
    expect(state.get('identity', 'ann')?.roleAttributes).toEqual(['__proto__', 'staff'])
    log.timeMs = endMs + 1
    log.endAccess()
    expect(state.get('identity', 'ann')?.roleAttributes).toEqual(['staff'])
  })
})

describe('The expiries of access', () => {
  test('are announced by events a day before, an hour before, and once when they are reached', () => {
    const { log, state } = network(policyEnd)
    const notice = { kind: 'servicePolicy', id: 'p', name: 'p', attribute: '', expiresAt: endMs }
    const seen: (readonly [number, unknown])[] = []
    for (let next = nextAccessExpiryMs(state); next !== null; next = nextAccessExpiryMs(state)) {
      log.timeMs = next
      log.endAccess()
      seen.push([endMs - next, state.get('accessEnd', accessEndRecordId)?.notices])
    }
    expect(seen).toEqual([
      [DAY_MS, [{ type: 'approaching', ...notice }]],
      [HOUR_MS, [{ type: 'approaching', ...notice }]],
      [0, [{ type: 'ended', ...notice }]],
    ])
  })

  test('are not announced in advance if less time is left than the announcement requires', () => {
    const { log, state } = network({ policy: { expiresAt: startMs + 10 * MINUTE_MS } })
    log.endAccess()
    expect(state.get('accessEnd', accessEndRecordId)?.notices).toEqual([])
    expect(nextAccessExpiryMs(state)).toBe(startMs + 10 * MINUTE_MS)
  })

  test('are announced in advance by only one event if the times for both advance events pass before an entry is applied', () => {
    const { log, state } = network(policyEnd)
    log.timeMs = endMs - MINUTE_MS
    log.endAccess()
    expect(state.get('accessEnd', accessEndRecordId)?.notices).toHaveLength(1)
    expect(nextAccessExpiryMs(state)).toBe(endMs)
  })

  test('are carried out in several log entries of limited size if many are due at the same time', () => {
    const { log, state } = network()
    const { endsPerEntryMax } = accessExpiryLimits
    for (let n = 0; n < endsPerEntryMax + 5; n += 1) {
      log.create('servicePolicy', `q${n}`, policy(`q${n}`, [], [], { expiresAt: endMs }))
    }
    log.timeMs = endMs
    const left = (): number => [...state.ends.between('', '~', 1000)].length
    log.endAccess()
    expect(left()).toBe(5)
    expect(nextAccessExpiryMs(state)).toBeLessThanOrEqual(log.timeMs)
    log.endAccess()
    expect([left(), nextAccessExpiryMs(state)]).toEqual([0, null])
  })

  test('are undone by a reset of log time if only wrong clocks had made them due', () => {
    const { log, state, rights } = network({ ...policyEnd, ...attributeEnd })
    log.timeMs = endMs + DAY_MS
    log.endAccess()
    expect(rights()).toEqual([])
    const target = create(LogTimeResetSchema, { targetMs: BigInt(startMs + HOUR_MS) })
    log.command(CommandKind.LOG_TIME_RESET, toBinary(LogTimeResetSchema, target), { level: 2 })
    expect(rights()).toEqual(['Dial'])
    log.timeMs += 6 * DAY_MS
    expect(nextAccessExpiryMs(state)).toBe(endMs - DAY_MS)
    log.timeMs += DAY_MS
    log.endAccess()
    expect(rights()).toEqual([])
  })

  test('take effect neither early nor late when the leader’s clock runs back', () => {
    const { log, rights } = network(policyEnd)
    log.timeMs = endMs - 1
    log.endAccess()
    // Log time never decreases: the leader repeats the last time.
    for (let n = 0; n < 3; n += 1) log.endAccess()
    expect(rights()).toEqual(['Dial'])
    log.timeMs = endMs
    log.endAccess()
    expect(rights()).toEqual([])
  })
})
