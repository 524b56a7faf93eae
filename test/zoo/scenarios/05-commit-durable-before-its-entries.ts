import { assert } from '../../../src/lib/assert.ts'
import { someEntries } from '../../store/support/entries.ts'
import { powerCuts } from '../power-cuts.ts'

/** The power goes while a new term, its entries and their commit index are written together. */
export function scenario(): void {
  powerCuts(
    {
      before: (disk) =>
        disk.write({
          token: 1,
          hardState: { term: 1, votedFor: null },
          entries: someEntries(1, 3),
          commit: 3,
        }),
      during: (disk) =>
        disk.write({
          token: 2,
          hardState: { term: 2, votedFor: null },
          entries: someEntries(4, 5, 2),
          commit: 8,
        }),
    },
    ({ commit, entries }) =>
      assert(commit <= entries.length, `I9: commit ${commit} of ${entries.length} entries`),
  )
}
