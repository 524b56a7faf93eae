import { expect, test } from 'vitest'
import { planRecovery } from '../../src/controller/recover/plan.ts'
import { decodeSurvivor } from '../../src/controller/recover/survivor-file.ts'
import type { SurvivingMemberFacts } from '../../src/controller/recover/survivor.ts'

// Goal: a cluster is recovered only if this is necessary, from the member that loses least, and
// every refusal contains a remedy. Method: facts about the surviving members as the program reads
// them, with one fault at a time.

const voters = (...ids: string[]): SurvivingMemberFacts['members'] =>
  ids.map((id) => ({ id, isVoter: true, address: `${id}.test:1480` }))

function facts(id: string, change: Partial<SurvivingMemberFacts> = {}): SurvivingMemberFacts {
  return {
    id,
    clusterId: 'cluster-1',
    generation: 1,
    term: 5,
    last: { term: 5, index: 100 },
    lastMs: Date.UTC(2026, 0, 2),
    commit: 98,
    configurationIndex: 7,
    members: voters('a', 'b', 'c', 'd', 'e'),
    finding: null,
    fencedBy: null,
    ...change,
  }
}

function refusal(
  own: SurvivingMemberFacts,
  others: SurvivingMemberFacts[] = [],
  acceptsLoss = false,
): string {
  const planned = planRecovery(own, others, acceptsLoss)
  return planned.ok ? 'planned' : planned.reason
}

test('a recovery from the member with the longest log is permitted, and the plan lists which entries may be lost', () => {
  const planned = planRecovery(facts('a'), [facts('b', { last: { term: 5, index: 99 } })], false)
  expect(planned).toMatchObject({
    ok: true,
    plan: { generation: 2, givenUp: ['b', 'c', 'd', 'e'], confirmation: 'without b c d e' },
  })
  const warnings = planned.ok ? planned.plan.warnings.join('\n') : ''
  expect(warnings).toContain('after 2026-01-02T00:00:00.000Z (index 100 of term 5)')
  expect(warnings).toContain('entries after index 98 (2) may be uncommitted')
  expect(warnings).toContain('no data of c, d, e was inspected')
  expect(warnings).toContain('of b, c, d, e; if one of them runs, or is recovered elsewhere')
})

test('a recovery from a survivor is refused if the log of another survivor ends with a later term, or in the same term at a higher index, unless the operator accepts the loss', () => {
  const longer = facts('b', { last: { term: 5, index: 101 } })
  expect(refusal(facts('a'), [longer])).toContain(
    'b has more entries: its log ends at index 101 of term 5',
  )
  const newer = facts('b', { last: { term: 6, index: 90 } })
  expect(refusal(facts('a'), [newer])).toContain('recover there')
  expect(refusal(facts('a'), [newer], true)).toBe('planned')
  expect(refusal(facts('a'), [facts('b', { last: { term: 4, index: 900 } })])).toBe('planned')
})

test('a cluster that has a majority is not recovered, even if the operator accepts loss, but damaged members do not count toward this majority', () => {
  const others = [facts('b'), facts('c')]
  expect(refusal(facts('a'), others, true)).toContain(
    '3 of 5 voters are left (a, b, c), which is a majority',
  )
  const damaged = [facts('b'), facts('c', { finding: 'a record is damaged' })]
  expect(refusal(facts('a'), damaged)).toBe('planned')
  expect(refusal(facts('a', { members: voters('a') }))).toContain('a is the only member; start it')
})

test('files that survivors of a cluster wrote for its recovery are refused if one belongs to another cluster or generation, or if two belong to the same controller', () => {
  const own = facts('a')
  expect(refusal(own, [facts('b', { clusterId: 'cluster-2' })])).toContain(
    'b belongs to cluster cluster-2',
  )
  expect(refusal(own, [facts('b', { generation: 2 })])).toContain('was already recovered there')
  expect(refusal(own, [facts('b', { generation: 0 })])).toContain('outdated generation')
  expect(refusal(own, [facts('a')])).toContain('a is given twice')
  expect(refusal(own, [facts('b'), facts('b')])).toContain('b is given twice')
})

test('a fenced, removed, damaged or non-voting data folder is refused, but the operator may accept the damaged and the non-voting one', () => {
  expect(refusal(facts('a', { fencedBy: 3 }), [], true)).toContain('into generation 3')
  expect(refusal(facts('z'), [], true)).toContain('z was removed in configuration')
  const damaged = facts('a', { finding: 'a record is damaged' })
  expect(refusal(damaged)).toContain('a is damaged (a record is damaged)')
  expect(refusal(damaged, [], true)).toBe('planned')
  const members = [{ id: 'a', isVoter: false, address: 'a.test:1480' }, ...voters('b', 'c')]
  expect(refusal(facts('a', { members }))).toContain('a is a learner')
  expect(refusal(facts('a', { members }), [], true)).toBe('planned')
})

test('the files that survivors of a cluster write for its recovery can be read from JSON, and a file with a malformed field is refused', () => {
  const own = facts('a')
  expect(decodeSurvivor(JSON.parse(JSON.stringify(own)))).toEqual(own)
  for (const key of Object.keys(own)) {
    expect(() => decodeSurvivor({ ...own, [key]: [] }), key).toThrow()
  }
  expect(() => decodeSurvivor({ ...own, last: { term: 1, index: -1 } })).toThrow(
    'index is no whole',
  )
  expect(() => decodeSurvivor([])).toThrow('the file is no object')
})
