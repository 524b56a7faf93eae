import { deepStrictEqual } from 'node:assert'
import { expect, test } from 'vitest'
import { TooManyWritesError } from '../../src/fsm/records/state.ts'
import { LayeredMap } from '../../src/fsm/records/layered-map.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import { previewLimits } from '../../src/fsm/access/relation-change-finder.ts'
import { seededRandom } from '../../src/lib/random.ts'
import { completedPreview, pairsOf, runPreviewCampaign } from './preview-campaign.ts'
import { identitiesOf, servicesOf, slowTypes } from './support/access-twin.ts'
import { formedState, identity, policy, service, startMs } from './support/log.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

const clock = { nowMs: () => startMs, monotonicMs: () => 0 }
const caller = { isAdmin: true, permissions: [] }

test('the preview of writes predicts their effect on random networks', () => {
  const figures = runPreviewCampaign(15, 700_001)
  // A campaign with few changes would prove little, so this checks their number.
  expect(figures.refused).toBeGreaterThan(100)
  expect(figures.given).toBeGreaterThan(100)
  expect(figures.taken).toBeGreaterThan(100)
  expect(figures.checks).toBeGreaterThan(3)
})

function slowDials(state: ClusterState): ReadonlySet<string> {
  const dials = identitiesOf(state).flatMap((one) =>
    servicesOf(state).flatMap((other) =>
      slowTypes(state, one, other).includes('Dial') ? [`${one.id} ${other.id}`] : [],
    ),
  )
  return new Set(dials)
}

/** Identities and services of ten departments, with policies between them. */
function departments(identities: number, services: number) {
  const { state, log } = formedState()
  const random = seededRandom(3)
  const some = (): string[] => [`#d${random.integer(0, 9)}`, `#d${random.integer(0, 9)}`]
  for (let n = 0; n < identities; n += 1) {
    log.create('identity', `i${n}`, identity(`i${n}`, [`d${n % 10}`, `e${n % 3}`]))
  }
  for (let n = 0; n < services; n += 1) {
    log.create('service', `s${n}`, service(`s${n}`, [`d${n % 10}`]))
  }
  for (let n = 0; n < 12; n += 1) {
    const semantic = n % 3 === 0 ? 'AllOf' : 'AnyOf'
    log.create('servicePolicy', `p${n}`, policy(`p${n}`, some(), some(), { semantic }))
  }
  return { state, log, reader: new StateReader(state, clock) }
}

test('if many policies select a record, the preview finds the changed pairs of identity and service that a comparison of all pairs finds', () => {
  const { state, log, reader } = departments(270, 260)
  const fields = policy('p1', ['#d1', '#e1', '@i5'], ['#d2', '#d3', '#d4', '#d5', '#d6'])
  const before = slowDials(state)
  const difference = completedPreview(
    reader.previewAccess([{ mode: 'patch', entity: 'servicePolicy', id: 'p1', fields }], caller),
  )
  const [given, taken] = difference.pairs.map((change) => pairsOf(change, 1000).sort())
  log.patch('servicePolicy', 'p1', fields)
  const after = slowDials(state)
  // Not compared with `expect`, which would print a difference of tens of thousands of lines.
  deepStrictEqual(given, [...after].filter((one) => !before.has(one)).sort())
  deepStrictEqual(taken, [...before].filter((one) => !after.has(one)).sort())
  expect(given?.length).toBeGreaterThan(1000)
})

test('a preview is aborted when records change during it', () => {
  const { log, reader } = departments(300, 290)
  const fields = policy('new', ['#all'], ['#all'])
  const preview = reader.previewAccess(
    [{ mode: 'create', entity: 'servicePolicy', id: 'new', fields }],
    caller,
  )
  if (preview.outcome !== 'judged') throw new Error('the policy is taken')
  expect(preview.difference.next().done).toBe(false)
  log.logIn('as1', 'i1', '')
  expect(preview.difference.next().done).toBe(false)
  log.delete('servicePolicy', 'p2')
  expect(preview.difference.next()).toEqual({ done: true, value: null })
})

test('a preview of a change that would affect too many records is refused', () => {
  const { state, reader } = departments(1, 1)
  const digest = state.stateDigest()
  const layer = state.layer(2)
  layer.remove('identity', 'i0')
  layer.remove('service', 's0')
  expect(() => layer.remove('servicePolicy', 'p0')).toThrow(TooManyWritesError)
  expect([state.stateDigest(), layer.get('identity', 'i0')]).toEqual([digest, undefined])
  expect(state.get('identity', 'i0')).toBeDefined()
  const base = { createdAt: startMs, updatedAt: startMs, revision: 1 }
  for (let n = 0; n < previewLimits.previewWritesMax; n += 1) {
    state.put('terminator', { ...base, id: `t${n}`, serviceId: 's0', address: 'tcp:a:1' })
  }
  const gone = [{ mode: 'delete', entity: 'service', id: 's0', fields: {} }] as const
  expect(reader.previewAccess(gone, caller)).toEqual({ outcome: 'tooMany' })
  expect(state.table('terminator').rows.size).toBe(previewLimits.previewWritesMax)
})

test('a layered map (changes on top of another map) behaves like a map, and never changes the map below', () => {
  const random = seededRandom(1)
  for (let round = 0; round < 50; round += 1) {
    const below = new Map<string, number>()
    for (let n = 0; n < random.integer(0, 6); n += 1) below.set(`k${random.integer(0, 9)}`, n)
    const twin = new Map(below)
    const layered = new LayeredMap(below)
    const held = new Map(below)
    for (let n = 0; n < 40; n += 1) {
      const key = `k${random.integer(0, 9)}`
      if (random.next() < 0.5) expect(layered.delete(key)).toBe(twin.delete(key))
      else {
        layered.set(key, n)
        twin.set(key, n)
      }
      expect([layered.size, layered.get(key), layered.has(key)]).toEqual([
        twin.size,
        twin.get(key),
        twin.has(key),
      ])
    }
    expect(new Map([...layered].sort())).toEqual(new Map([...twin].sort()))
    expect([...layered.keys()].sort()).toEqual([...twin.keys()].sort())
    expect([...layered.values()].sort()).toEqual([...twin.values()].sort())
    layered.clear()
    expect([layered.size, [...layered]]).toEqual([0, []])
    expect(below).toEqual(held)
  }
})
