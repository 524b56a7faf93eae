import { assert } from '../../../src/lib/assert.ts'
import type { HardState } from '../../../src/raft/types.ts'
import { powerCuts } from '../power-cuts.ts'

const before: HardState = { term: 4, votedFor: 'a' }
const after: HardState = { term: 5, votedFor: 'b' }

/** The power goes while a vote of a later term is written: the old promise is found or the new one, never half of each. */
export function scenario(): void {
  const write = (token: number, hardState: HardState) => ({
    token,
    hardState,
    entries: [],
    commit: 0,
  })
  powerCuts(
    {
      before: (disk) => disk.write(write(1, before)),
      during: (disk) => disk.write(write(2, after)),
    },
    ({ hardState: { term, votedFor } }) => {
      const isOne = [before, after].some((one) => one.term === term && one.votedFor === votedFor)
      assert(isOne, `I8: a start finds a vote for ${votedFor} in term ${term}`)
    },
  )
}
