import { assert } from '../../../src/lib/assert.ts'
import { someEntries } from '../../store/support/entries.ts'
import { powerCuts } from '../power-cuts.ts'

/** The power goes while the log is begun anew after a snapshot: the old log is found or the new one. */
export function scenario(): void {
  powerCuts(
    {
      before: (disk) =>
        disk.write({
          token: 1,
          hardState: { term: 1, votedFor: null },
          entries: someEntries(1, 9),
          commit: 9,
        }),
      during: (disk) => {
        disk.reset({ term: 3, index: 500 }, 2)
        disk.write({
          token: 3,
          hardState: null,
          entries: someEntries(501, 3, 3),
          commit: 500,
        })
      },
    },
    ({ base, entries }) =>
      assert(
        base.index === 500 || (base.index === 0 && entries.length === 9),
        `I9: a log of ${entries.length} entries after ${base.index}`,
      ),
  )
}
