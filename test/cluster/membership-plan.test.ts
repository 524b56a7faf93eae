import { create } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'

import {
  type Configuration,
  ConfigurationSchema,
  DepartureSchema,
  MemberSchema,
} from '../../proto/gen/membership_pb.ts'
import { nextReconcileStep, type ReconcilerView } from '../../src/cluster/membership/reconcile.ts'
import {
  type AdmissionContext,
  type AdmissionRequestFacts,
  decideAdmission,
} from '../../src/cluster/membership/decide-admission.ts'
import { planMembershipChange } from '../../src/cluster/membership/plan.ts'
import type { MembershipSnapshot } from '../../src/cluster/membership/membership-snapshot.ts'
import { membershipLimits } from '../../src/cluster/membership/limits.ts'
import { addRemovedKey } from '../../src/cluster/membership/member-keys.ts'
import { isWellFormedTarget } from '../../src/raft/configuration.ts'
import { FEATURE_LEVEL, REMOVED_KEYS_FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import type { MembershipChange } from '../../src/ports/membership.ts'

// Tests the pure functions that decide about members: from known facts to a plan or a refusal.

const keyOf = (id: string): Uint8Array => new Uint8Array(32).fill(id.charCodeAt(1))
const storeOf = (id: string): Uint8Array => new Uint8Array(16).fill(id.charCodeAt(1))

interface Changes {
  readonly out?: readonly string[]
  readonly lag?: Readonly<Record<string, number | null>>
  readonly admitted?: readonly string[]
  readonly departed?: Configuration['departed']
  readonly levelInForce?: number
}

/**
 * A configuration as text: an uppercase letter is a voter, a lowercase letter a learner; `+` marks
 * a learner to promote. `c1` leads: `C1 C2 c3+`.
 */
function membersOf(text: string): Configuration {
  const members = text.split(' ').map((word) => {
    const id = word.replace('+', '').toLowerCase()
    const voter = word.startsWith('C')
    const promote = word.endsWith('+')
    const pins = { storeId: storeOf(id), publicKeySha256: keyOf(id) }
    return create(MemberSchema, { id, voter, promote, address: `${id}.test:1`, ...pins })
  })
  return create(ConfigurationSchema, { members })
}

function nowOf(
  text: string,
  { out = [], lag = {}, admitted = [], departed, levelInForce = FEATURE_LEVEL }: Changes = {},
): MembershipSnapshot {
  const record = membersOf(text)
  record.departed = departed ?? []
  return {
    record,
    leaderId: 'c1',
    featureLevel: levelInForce,
    inContact: new Set(record.members.flatMap(({ id }) => (out.includes(id) ? [] : [id]))),
    lagEntries: (id) => (lag[id] === undefined ? 0 : lag[id]),
    admittedKeySha256: (id) => (admitted.includes(id) ? keyOf(id) : null),
  }
}

/** A change as text, for example `remove c3`, `remove c3 compromised`, `replace c3 c4`. */
function changeOf(text: string): MembershipChange {
  const [verb, first = '', second = ''] = text.split(' ')
  if (verb === 'replace') return { verb, oldId: first, newId: second }
  if (verb === 'remove') return { verb, id: first, isCompromised: second === 'compromised' }
  return { verb: verb === 'demote' ? 'demote' : 'promote', id: first }
}

function namesOf(record: Configuration): string {
  return record.members
    .map(({ id, voter, promote }) => `${voter ? id.toUpperCase() : id}${promote ? '+' : ''}`)
    .join(' ')
}

describe('The plan for a membership change', () => {
  const plans: [string, string, string, number, number, string | null][] = [
    ['C1 C2 c3', 'promote c3', 'C1 C2 C3', 0, 1, null],
    ['C1 C2 C3', 'demote c3', 'C1 C2 c3', 1, 0, 'demote c3 and tolerate 0 failures'],
    ['C1 C2 C3', 'remove c3', 'C1 C2', 1, 0, 'remove c3 and tolerate 0 failures'],
    ['C1 C2 C3 C4', 'remove c4', 'C1 C2 C3', 1, 1, null],
    ['C1 C2 C3 C4 C5', 'remove c1', 'C2 C3 C4 C5', 2, 1, 'remove c1 and tolerate 1 failure'],
    ['C1 C2', 'remove c2', 'C1', 0, 0, null],
    ['C1 C2 C3 c4', 'remove c4', 'C1 C2 C3', 1, 1, null],
    ['C1 C2 C3 c4', 'replace c3 c4', 'C1 C2 C4', 1, 1, null],
    ['C1 c2+', 'demote c2', 'C1 c2', 0, 0, null],
    ['C1 c2+', 'promote c2', 'C1 C2', 0, 0, null],
  ]
  test.each(plans)(
    'for the members %s, the change %s results in %s',
    (members, change, after, before, then, confirmation) => {
      const planned = planMembershipChange(nowOf(members), changeOf(change))
      if (!planned.ok) throw new Error(planned.reason)
      expect(namesOf(planned.target)).toBe(after)
      expect(isWellFormedTarget(planned.target)).toBe(true)
      expect(planned.plan).toMatchObject({
        isNeeded: true,
        toleranceBefore: before,
        toleranceAfter: then,
        confirmation,
      })
    },
  )

  const alreadySo: [string, string][] = [
    ['C1 C2', 'promote c2'],
    ['C1 c2', 'demote c2'],
    ['C1 C2', 'remove c3'],
    ['C1 C2', 'remove c3 compromised'],
    ['C1 C4', 'replace c3 c4'],
  ]
  test.each(alreadySo)(
    'for the members %s, the change %s changes nothing and needs no confirmation',
    (members, change) => {
      const now = nowOf(members, { out: ['c2', 'c4'] })
      const planned = planMembershipChange(now, changeOf(change))
      expect(planned).toMatchObject({ ok: true, plan: { isNeeded: false, confirmation: null } })
    },
  )

  const refusals: [string, string, Changes, string][] = [
    ['C1 C2', 'promote c9', {}, 'c9 is not a member of this cluster; see flotilla cluster list'],
    ['C1 C2', 'demote c9', {}, 'c9 is not a member'],
    ['C1 c2', 'remove c1', {}, 'c1 is the last voter; promote another controller first'],
    ['C1 c2', 'demote c1', {}, 'c1 is the last voter'],
    ['C1 c2', 'promote c2', { out: ['c2'] }, 'c2 has no connection to the leader c1'],
    ['C1 c2', 'promote c2', { lag: { c2: 5000 } }, 'c2 is 5000 log entries behind: wait'],
    ['C1 c2+', 'promote c2', { lag: { c2: 5000 } }, 'it is promoted automatically'],
    ['C1 c2', 'promote c2', { lag: { c2: null } }, 'c2 has not started to replicate the log'],
    ['C1 C2 C3', 'remove c2', { out: ['c3'] }, '2 must respond and c3 does not'],
    ['C1 C2 C3 c4', 'replace c3 c4', { out: ['c4'] }, 'c4 has no connection'],
    ['C1 C2 C3', 'replace c2 c3', {}, 'c3 is a voter already; remove c2 instead'],
    ['C1 c2 c3', 'replace c2 c3', {}, 'c2 is a learner; promote c3 and remove c2'],
    [
      'C1 C2 c3',
      'replace c3 c2',
      {},
      'to put c3 in the place of c2, type: flotilla cluster replace c2 c3',
    ],
    ['C1 c2', 'replace c2 c2', {}, 'c2 cannot replace itself'],
    ['C1 C2', 'replace c1 c9', {}, 'c9 is not a member'],
  ]
  test.each(refusals)(
    'for the members %s, the change %s in the situation %o is refused: %s',
    (members, change, changes, reason) => {
      const planned = planMembershipChange(nowOf(members, changes), changeOf(change))
      expect(planned).toMatchObject({
        ok: false,
        reason: expect.stringContaining(reason) as string,
      })
    },
  )

  test('allows the removal of a dead voter while the other voters have a majority', () => {
    const planned = planMembershipChange(nowOf('C1 C2 C3', { out: ['c3'] }), changeOf('remove c3'))
    expect(planned).toMatchObject({ ok: true, plan: { isNeeded: true } })
  })

  test('warns of an even number of voters, of removing the leader, and of unreachable voters', () => {
    const warningsOf = (members: string, change: string, changes: Changes = {}): string => {
      const planned = planMembershipChange(nowOf(members, changes), changeOf(change))
      return planned.ok ? planned.plan.warnings.join('; ') : planned.reason
    }
    expect(warningsOf('C1 C2 C3', 'remove c3')).toContain('prefer an odd number')
    expect(warningsOf('C1 C2 C3 C4', 'remove c1')).toContain(
      'c1 is the leader; it transfers leadership',
    )
    expect(warningsOf('C1 C2 C3 C4', 'remove c4', { out: ['c3'] })).toContain(
      'c3 is unreachable; until that is repaired, losing one more voter stops writes',
    )
    expect(warningsOf('C1 C2', 'remove c3')).toContain('nothing to remove')
    expect(warningsOf('C1 C2 C3 C4', 'promote c4')).toBe('')
    expect(warningsOf('C1 C2 C3 C4', 'remove c4')).toBe(
      'people and programs that logged in at c4 by OIDC stay logged in if they use the address of their login or its client certificate; others of them log in again',
    )
    for (const members of ['C1 C2 C3 C4', 'C1 C2 C3']) {
      expect(warningsOf(members, 'remove c4 compromised')).toContain('pki renew-issuing')
    }
    expect(warningsOf('C1 C2 C3 C4', 'remove c4 compromised')).toContain(
      'all API sessions end: all people and programs log in again',
    )
    for (const members of ['C1 C2 C3']) {
      expect(warningsOf(members, 'remove c4 compromised')).not.toContain('log in again')
    }
  })

  test('that removes a controller adds one entry to the list of departed controllers, and a later report that the controller was compromised changes this entry', () => {
    const first = planMembershipChange(nowOf('C1 C2 C3'), changeOf('remove c3'))
    if (!first.ok) throw new Error(first.reason)
    expect(first.target.departed).toMatchObject([{ id: 'c3', compromised: false }])
    const { departed } = first.target
    const again = planMembershipChange(
      nowOf('C1 C2', { departed, admitted: ['c3'] }),
      changeOf('remove c3'),
    )
    expect(again).toMatchObject({ ok: true, plan: { isNeeded: false } })
    const worse = planMembershipChange(
      nowOf('C1 C2', { departed }),
      changeOf('remove c3 compromised'),
    )
    if (!worse.ok) throw new Error(worse.reason)
    expect(worse.plan.isNeeded).toBe(true)
    expect(worse.target.departed).toMatchObject([{ id: 'c3', compromised: true }])
  })

  test('that removes a controller records its key, which routers must refuse, if every member supports this', () => {
    const removed = (levelInForce: number) => {
      const planned = planMembershipChange(
        nowOf('C1 C2 C3', { levelInForce }),
        changeOf('remove c3'),
      )
      if (!planned.ok) throw new Error(planned.reason)
      return planned.target.removed
    }
    expect(removed(REMOVED_KEYS_FEATURE_LEVEL)).toMatchObject([
      { id: 'c3', publicKeySha256: keyOf('c3') },
    ])
    expect(removed(REMOVED_KEYS_FEATURE_LEVEL - 1)).toEqual([])
  })

  test('keeps only the newest removed keys that routers must refuse, without duplicates', () => {
    const record = membersOf('C1')
    for (let number = 0; number < membershipLimits.removedKeysMax + 3; number += 1) {
      addRemovedKey(record, { id: `x${number}`, publicKeySha256: keyOf('x') })
    }
    addRemovedKey(record, { id: 'x5', publicKeySha256: keyOf('x') })
    const ids = record.removed.map(({ id }) => id)
    expect([ids.length, ids[0], ids.at(-1)]).toEqual([membershipLimits.removedKeysMax, 'x3', 'x5'])
  })

  test('that removes an admitted controller that never connected revokes the controller’s admission', () => {
    const planned = planMembershipChange(
      nowOf('C1 C2', { admitted: ['c3'] }),
      changeOf('remove c3'),
    )
    if (!planned.ok) throw new Error(planned.reason)
    expect(planned.target.departed).toMatchObject([{ id: 'c3' }])
    expect(planned.plan.warnings).toEqual([
      'c3 was admitted and never connected; its admission is revoked',
    ])
  })
})

describe('A request for admission', () => {
  const request = (
    id: string,
    changes: Partial<AdmissionRequestFacts> = {},
  ): AdmissionRequestFacts => ({
    clusterId: 'k1',
    storeId: storeOf(id),
    address: `${id}.new:1`,
    version: 'v1',
    featureLevel: 1,
    startedAtMs: 5,
    ...changes,
  })
  const context = (text: string, changes: Partial<AdmissionContext> = {}): AdmissionContext => ({
    record: membersOf(text),
    configurationIndex: 12,
    clusterId: 'k1',
    featureLevel: 1,
    admitted: null,
    liveStartedAtMs: null,
    ...changes,
  })
  const caller = (id: string, key = id) => ({ id, publicKeySha256: keyOf(key) })
  const otherStore = new Uint8Array(16).fill(9)

  test('changes nothing for a member with the same key and store ID, but is refused while another process of this member is connected', () => {
    const judge = (live: number | null) =>
      decideAdmission(caller('c2'), request('c2'), context('C1 C2', { liveStartedAtMs: live }))
    expect(judge(null)).toEqual({ verdict: 'member' })
    expect(judge(5)).toEqual({ verdict: 'member' })
    expect(judge(4)).toMatchObject({ verdict: 'refused', reason: 'store-in-use' })
  })

  test('makes an admitted controller a learner, which is later promoted if it was admitted as a voter', () => {
    for (const isVoter of [true, false]) {
      const admitted = { keySha256: keyOf('c3'), isVoter }
      const verdict = decideAdmission(caller('c3'), request('c3'), context('C1 C2', { admitted }))
      if (verdict.verdict !== 'added') throw new Error(verdict.verdict)
      expect(namesOf(verdict.target)).toBe(isVoter ? 'C1 C2 c3+' : 'C1 C2 c3')
      expect(verdict.target.members[2]).toMatchObject({ address: 'c3.new:1', returning: false })
    }
  })

  test('from a controller with a removed key deletes this key from the keys that routers refuse', () => {
    const record = membersOf('C1 C2')
    for (const key of ['c3', 'c4']) {
      addRemovedKey(record, { id: 'c3', publicKeySha256: keyOf(key) })
    }
    const admitted = { keySha256: keyOf('c3'), isVoter: true }
    const verdict = decideAdmission(
      caller('c3'),
      request('c3'),
      context('C1 C2', { record, admitted }),
    )
    if (verdict.verdict !== 'added') throw new Error(verdict.verdict)
    expect(verdict.target.removed).toMatchObject([{ id: 'c3', publicKeySha256: keyOf('c4') }])
  })

  test('from a voter with another disk makes the voter a learner, which is later promoted again', () => {
    const again = request('c2', { storeId: otherStore })
    const verdict = decideAdmission(caller('c2'), again, context('C1 C2'))
    if (verdict.verdict !== 'returning') throw new Error(verdict.verdict)
    expect(namesOf(verdict.target)).toBe('C1 c2+')
    const [, member] = verdict.target.members
    expect(member).toMatchObject({ storeId: otherStore, returning: true, address: 'c2.new:1' })
    const learner = decideAdmission(caller('c2'), again, context('C1 c2'))
    if (learner.verdict !== 'returning') throw new Error(learner.verdict)
    expect(learner.target.members[1]).toMatchObject({ promote: false, returning: false })
  })

  test('from a member with another disk is refused while the member is running', () => {
    const again = request('c2', { storeId: otherStore })
    expect(
      decideAdmission(caller('c2'), again, context('C1 C2', { liveStartedAtMs: 5 })),
    ).toMatchObject({ verdict: 'refused', reason: 'store-in-use' })
  })

  const departure = create(DepartureSchema, { id: 'c3', publicKeySha256: keyOf('c3') })
  const departed = { ...membersOf('C1 C2'), departed: [departure] }
  const refusals: [string, string, string, Partial<AdmissionContext>][] = [
    ['not-admitted', 'c3', 'c3', {}],
    ['other-key', 'c2', 'c9', {}],
    ['other-key', 'c3', 'c9', { admitted: { keySha256: keyOf('c3'), isVoter: true } }],
    ['removed', 'c3', 'c3', { record: departed }],
    [
      'removed',
      'c3',
      'c3',
      { record: departed, admitted: { keySha256: keyOf('c3'), isVoter: true } },
    ],
    ['other-cluster', 'c2', 'c2', { clusterId: 'k2' }],
    [
      'full',
      'c3',
      'c3',
      {
        admitted: { keySha256: keyOf('c3'), isVoter: true },
        record: membersOf(Array.from({ length: 32 }, (_, at) => `cx${at}`).join(' ')),
      },
    ],
  ]
  test.each(refusals)(
    'is refused with the reason %s for the controller %s with the key of %s (%#)',
    (reason, id, key, changes) => {
      const verdict = decideAdmission(caller(id, key), request(id), context('C1 C2', changes))
      expect(verdict).toMatchObject({ verdict: 'refused', reason })
    },
  )

  test('from a new controller, or from a member with a new disk, is refused with advice if its release does not support the active feature level', () => {
    const admitted = { keySha256: keyOf('c3'), isVoter: true }
    const cases = [
      ['c3', context('C1 C2', { admitted, featureLevel: 2 })],
      ['c2', context('C1 C2', { featureLevel: 2 })],
    ] as const
    for (const [id, seen] of cases) {
      const old = decideAdmission(caller(id), request(id, { storeId: otherStore }), seen)
      expect(old).toMatchObject({ verdict: 'refused', reason: 'too-old' })
      expect(old).toMatchObject({
        detail: expect.stringContaining('the cluster is at feature level 2') as string,
      })
      const newer = request(id, { storeId: otherStore, featureLevel: 3 })
      expect('target' in decideAdmission(caller(id), newer, seen)).toBe(true)
    }
  })

  test('is refused with the index of the configuration if the controller is neither admitted nor a member', () => {
    const verdict = decideAdmission(caller('c3'), request('c3'), context('C1 C2'))
    expect(verdict).toMatchObject({
      detail: expect.stringContaining('configuration 12') as string,
    })
  })
})

describe('The next action of the membership reconciler', () => {
  const viewOf = (
    text: string,
    changes: Partial<ReconcilerView> & Changes = {},
  ): ReconcilerView => ({
    ...nowOf(text, changes),
    reachedBy: () => new Set(['c1', 'c2', 'c3', 'c4', 'c5']),
    silentMs: () => 0,
    isRotationDue: false,
    lacksSecrets: false,
    admittedIdsWithExpiredTickets: [],
    featureLevel: { inForce: 1, ofVoters: 1 },
    ...changes,
  })

  test('is null when no action is due', () => {
    expect(nextReconcileStep(viewOf('C1 C2 C3 c4'), 1000)).toBeNull()
  })

  test('promotes together all learners that are ready and reachable from a majority', () => {
    expect(nextReconcileStep(viewOf('C1 C2 C3 c4+ c5+'), 1000)).toEqual({
      type: 'promote',
      ids: ['c4', 'c5'],
    })
    const lag = { c4: 1001 }
    expect(nextReconcileStep(viewOf('C1 C2 C3 c4+ c5+', { lag }), 1000)).toEqual({
      type: 'promote',
      ids: ['c5'],
    })
    expect(nextReconcileStep(viewOf('C1 C2 C3 c4+', { out: ['c4'] }), 1000)).toBeNull()
    const reachedBy = (...ids: string[]) => ({ reachedBy: () => new Set(ids) })
    expect(nextReconcileStep(viewOf('C1 C2 C3 c4+', reachedBy()), 1000)).toBeNull()
    expect(nextReconcileStep(viewOf('C1 C2 C3 c4+', reachedBy('c4', 'c9')), 1000)).toBeNull()
    expect(nextReconcileStep(viewOf('C1 C2 C3 c4+', reachedBy('c3')), 1000)?.type).toBe('promote')
    expect(nextReconcileStep(viewOf('C1 C2 c3+', reachedBy()), 1000)).toBeNull()
    expect(nextReconcileStep(viewOf('C1 c2+', reachedBy()), 1000)?.type).toBe('promote')
  })

  test('completes a removal before it shares secrets', () => {
    const departed = [create(DepartureSchema, { id: 'c5', publicKeySha256: keyOf('c5') })]
    const view = viewOf('C1 C2 c3+', { departed, lacksSecrets: true })
    expect(nextReconcileStep(view, 1000)).toMatchObject({ type: 'settle', departure: { id: 'c5' } })
    expect(nextReconcileStep(viewOf('C1 C2', { lacksSecrets: true }), 1000)).toEqual({
      type: 'share',
    })
    const due = viewOf('C1 C2', { lacksSecrets: true, isRotationDue: true })
    expect(nextReconcileStep(due, 1000)).toEqual({ type: 'rotate' })
    expect(nextReconcileStep(due, 1000, (type) => type === 'rotate')).toEqual({ type: 'share' })
  })

  test('raises the feature level if every voter supports a higher level, and never lowers it', () => {
    const view = (inForce: number, ofVoters: number): ReconcilerView =>
      viewOf('C1 C2 C3', { featureLevel: { inForce, ofVoters } })
    expect(nextReconcileStep(view(1, 2), 1000)).toEqual({ type: 'raise', level: 2 })
    expect(nextReconcileStep(view(2, 2), 1000)).toBeNull()
    expect(nextReconcileStep(view(2, 1), 1000)).toBeNull()
    expect(nextReconcileStep(view(2, 0), 1000)).toBeNull()
  })

  test('removes the admission of a controller whose ticket has expired and which is not a member', () => {
    const admittedIdsWithExpiredTickets = ['c1', 'c9']
    expect(nextReconcileStep(viewOf('C1 C2', { admittedIdsWithExpiredTickets }), 1000)).toEqual({
      type: 'drop',
      id: 'c9',
      reason: 'it never connected after its admission',
    })
    expect(
      nextReconcileStep(viewOf('C1 C2 C9', { admittedIdsWithExpiredTickets }), 1000),
    ).toBeNull()
  })

  test('removes a learner that stays disconnected before its promotion, but not a voter that returns with a new disk', () => {
    const late = { out: ['c2'], silentMs: () => 1000 }
    expect(nextReconcileStep(viewOf('C1 c2+', late), 1000)).toEqual({
      type: 'drop',
      id: 'c2',
      reason: 'it was disconnected for too long before its promotion',
    })
    expect(nextReconcileStep(viewOf('C1 c2+', { ...late, silentMs: () => 999 }), 1000)).toBeNull()
    expect(nextReconcileStep(viewOf('C1 c2', late), 1000)).toBeNull()
    expect(nextReconcileStep(viewOf('C1 C2', late), 1000)).toBeNull()
    const waitedFor = viewOf('C1 c2+', late)
    for (const member of waitedFor.record.members) member.returning = true
    expect(nextReconcileStep(waitedFor, 1000)).toBeNull()
  })
})
