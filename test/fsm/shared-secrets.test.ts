import { expect, test } from 'vitest'
import { secretLimits } from '../../src/fsm/cluster/secret.ts'
import { Joining } from './support/joining.ts'

function ofTwo(): Joining {
  const cluster = new Joining()
  cluster.join('ctrl1')
  cluster.join('ctrl2')
  cluster.rotate('clusterKey', 1, ['ctrl1', 'ctrl2'])
  cluster.rotate('issuingAuthority', 1, ['ctrl1', 'ctrl2'])
  return cluster
}
const both = ['ctrl1', 'ctrl2'] as const

test('a key rotation adds the next key version, and sets the end of the overlap for the previous version', () => {
  const cluster = ofTwo()
  expect(cluster.rotate('clusterKey', 2, both, 30_000)).toEqual({ ok: true, id: 'clusterKey' })
  expect(cluster.versions('clusterKey')).toMatchObject([
    { version: 1, overlapEndsAt: cluster.log.timeMs + 30_000 },
    { version: 2, overlapEndsAt: null, exposure: 'none' },
  ])
})

test('the time at which an old key version becomes invalid is never postponed', () => {
  const cluster = ofTwo()
  cluster.rotate('clusterKey', 2, both, 30_000)
  const endsAt = cluster.log.timeMs + 30_000
  cluster.log.timeMs += 10_000
  cluster.rotate('clusterKey', 3, both, 60_000)
  expect(cluster.versions('clusterKey')[0]?.overlapEndsAt).toBe(endsAt)
})

test('the next key rotation removes a key version whose overlap is over', () => {
  const cluster = ofTwo()
  cluster.rotate('clusterKey', 2, both, 30_000)
  cluster.log.timeMs += 30_000
  cluster.rotate('clusterKey', 3, both, 30_000)
  expect(cluster.versions('clusterKey').map(({ version }) => version)).toEqual([2, 3])
})

test('the overlap of two key versions has a maximum length, even if a later end is proposed', () => {
  const cluster = ofTwo()
  cluster.rotate('clusterKey', 2, both, 365 * 24 * 60 * 60_000)
  const end = cluster.log.timeMs + secretLimits.overlapMsMax
  expect(cluster.versions('clusterKey')[0]?.overlapEndsAt).toBe(end)
})

test('the number of key versions is limited, and the oldest version is removed first', () => {
  const cluster = ofTwo()
  for (let version = 2; version <= 12; version += 1) cluster.rotate('clusterKey', version, both)
  expect(cluster.versions('clusterKey').map(({ version }) => version)).toEqual([
    5, 6, 7, 8, 9, 10, 11, 12,
  ])
})

test('a key version that a compromised controller knew is removed immediately, even if an overlap is proposed', () => {
  const cluster = ofTwo()
  cluster.rotate('clusterKey', 2, both, 60_000)
  cluster.remove('ctrl2', { compromised: true })
  cluster.rotate('clusterKey', 3, ['ctrl1'], 60_000)
  expect(cluster.versions('clusterKey').map(({ version }) => version)).toEqual([3])
})

test('a rotation removes every key version that a compromised controller could decrypt, also those from before its admission', () => {
  const cluster = ofTwo()
  cluster.remove('ctrl2')
  cluster.rotate('clusterKey', 2, ['ctrl1'])
  cluster.join('ctrl3')
  cluster.rotate('clusterKey', 3, ['ctrl1', 'ctrl3'])
  // ctrl3 was admitted before version 3 was created, and its admission contains versions 1 and 2.
  expect(cluster.versions('clusterKey').map(({ exposure }) => exposure)).toEqual([
    'left',
    'none',
    'none',
  ])
  cluster.remove('ctrl3', { compromised: true })
  cluster.rotate('clusterKey', 4, ['ctrl1'])
  expect(cluster.versions('clusterKey').map(({ version }) => version)).toEqual([4])
})

test.each([
  ['leaves a version out', 3, both],
  ['puts a version a second time', 1, both],
  ['leaves out an admitted controller', 2, ['ctrl1']],
  ['includes a controller that is not admitted', 2, ['ctrl1', 'ctrl2', 'ctrl9']],
  ['names one controller twice instead of another', 2, ['ctrl1', 'ctrl1']],
] as const)(
  'a rotation of secrets that %s is refused, and changes nothing',
  (_what, version, nodeIds) => {
    const cluster = ofTwo()
    expect(cluster.rotate('clusterKey', version, nodeIds)).toMatchObject({ code: 'REVISION_MOVED' })
    expect(cluster.versions('clusterKey').map((one) => one.version)).toEqual([1])
  },
)

test('a rotation changes nothing if its secrets were wrapped for a controller that has since been removed', () => {
  const cluster = ofTwo()
  cluster.remove('ctrl2')
  expect(cluster.rotate('clusterKey', 2, both)).toMatchObject({ code: 'REVISION_MOVED' })
  expect(cluster.rotate('clusterKey', 2, ['ctrl1']).ok).toBe(true)
})

test('the secret of an issuing CA is refused without a certificate, and every other secret is refused with a certificate', () => {
  const cluster = ofTwo()
  for (const [name, certificatePem] of [
    ['clusterKey', 'certificate'],
    ['issuingAuthority', ''],
    ['issuingAuthority', 'c'.repeat(100_000)],
    ['somethingElse', ''],
  ] as const) {
    expect(cluster.rotate(name, 2, both, 0, certificatePem)).toMatchObject({
      code: 'COULD_NOT_VALIDATE',
    })
  }
  expect(cluster.rotate('issuingAuthority', 2, both, 0, 'new').ok).toBe(true)
  expect(cluster.versions('issuingAuthority')).toMatchObject([
    { version: 2, certificatePem: 'new' },
  ])
})

test('a controller that lacks a key version receives it, and a key version that a controller has is not replaced', () => {
  const cluster = new Joining()
  cluster.join('ctrl1')
  cluster.rotate('clusterKey', 1, ['ctrl1'])
  const own = cluster.versions('clusterKey')[0]?.wrapped['ctrl1']
  expect(cluster.share('clusterKey', 1, 'ctrl1', 'other')).toMatchObject({ code: 'REVISION_MOVED' })
  expect(cluster.versions('clusterKey')[0]?.wrapped).toEqual({ ctrl1: own })
  expect(cluster.share('clusterKey', 1, 'ctrl9')).toMatchObject({ code: 'REVISION_MOVED' })
  expect(cluster.share('clusterKey', 2, 'ctrl1')).toMatchObject({ code: 'REVISION_MOVED' })
  const { state, versions } = { state: cluster.state, versions: cluster.versions('clusterKey') }
  const record = state.get('sharedSecret', 'clusterKey')
  state.put('sharedSecret', {
    ...record,
    id: 'clusterKey',
    versions: versions.map((version) => ({ ...version, wrapped: {} })),
  })
  expect(cluster.share('clusterKey', 1, 'ctrl1').ok).toBe(true)
  expect(Object.keys(cluster.versions('clusterKey')[0]?.wrapped ?? {})).toEqual(['ctrl1'])
})

test('secrets and join tickets are part of the digest of the whole state, and not of the digest of the records that clients see', () => {
  const cluster = ofTwo()
  const before = cluster.state.entitiesDigest()
  const state = cluster.state.stateDigest()
  cluster.rotate('clusterKey', 2, both)
  cluster.invite('ticket-a')
  expect(cluster.state.entitiesDigest()).toBe(before)
  expect(cluster.state.stateDigest()).not.toBe(state)
})
