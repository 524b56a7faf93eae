import { assert } from '../../../src/lib/assert.ts'
import { powerCuts } from '../power-cuts.ts'

/** The power goes while term and vote are written: a start finds the page of before or the new one. */
export function scenario(): void {
  powerCuts(
    {
      before: (disk) =>
        disk.write({
          token: 1,
          hardState: { term: 4, votedFor: 'a' },
          entries: [],
          commit: 0,
        }),
      during: (disk) =>
        disk.write({
          token: 2,
          hardState: { term: 5, votedFor: 'b'.repeat(200) },
          entries: [],
          commit: 0,
        }),
    },
    ({ hardState }) => assert(hardState.term >= 4, 'I8: a term was forgotten in a power cut'),
  )
}
