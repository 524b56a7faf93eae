import { expect, test } from 'vitest'
import type { MemberStatus } from '../../src/api/cluster/cluster-status.ts'
import { StatesDiffer, compareDigests } from './support/digests.ts'

function member(id: string, digestIndex: number, digest: string): MemberStatus {
  const progress = {
    term: 1,
    commit: 9,
    applied: 9,
    persisted: 9,
    lastContactMs: 0,
    isFailing: false,
    featureLevel: 1,
  }
  const place = { id, address: '', version: '' }
  return { ...place, role: 'follower', ...progress, digestIndex, digest }
}
const all = (): boolean => true

test('compareDigests rejects different states at one index, and repeats the query if the members are at different indexes', async () => {
  const same = [member('a', 5, 'x'), member('b', 5, 'x')]
  await compareDigests(() => Promise.resolve(same), all)
  const answers = [
    [member('a', 5, 'x'), member('b', 4, 'w')],
    [member('a', 5, 'x'), member('b', 5, 'y')],
  ]
  const status = (): Promise<MemberStatus[]> => Promise.resolve(answers.shift() ?? same)
  await expect(compareDigests(status, all)).rejects.toThrow(StatesDiffer)
  expect(answers).toEqual([])
})

test('compareDigests skips a controller that is stopped or does not serve requests', async () => {
  const members = [
    member('a', 5, 'x'),
    { ...member('b', 5, 'y'), isFailing: true },
    { ...member('c', 5, 'z'), lastContactMs: 60_000 },
    member('d', 5, 'q'),
  ]
  await compareDigests(
    () => Promise.resolve(members),
    (id) => id !== 'd',
  )
})
