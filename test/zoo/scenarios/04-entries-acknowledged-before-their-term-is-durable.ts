import { assert } from '../../../src/lib/assert.ts'
import { someEntries } from '../../store/support/entries.ts'
import { powerCuts } from '../power-cuts.ts'

/** The power goes as soon as the entries of a new term are reported durable, which is when they are acknowledged. */
export function scenario(): void {
  let isReported = false
  powerCuts(
    {
      before: (disk) => {
        const hardState = { term: 1, votedFor: null }
        disk.write({ token: 1, hardState, entries: someEntries(1, 3), commit: 3 })
      },
      during: (disk) => {
        isReported = false
        disk.onDurable = (token) => (isReported ||= token === 2)
        const hardState = { term: 2, votedFor: null }
        disk.write({ token: 2, hardState, entries: someEntries(4, 3, 2), commit: 3 })
      },
    },
    ({ hardState }) =>
      assert(
        !isReported || hardState.term === 2,
        'I8: entries of term 2 were acknowledged, and a start finds itself in term 1',
      ),
  )
}
