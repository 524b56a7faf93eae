import type { Progress } from './progress.ts'
import type { RaftState } from './state.ts'

/** Carries the commit index no further than the peer is known to agree. */
export function sendHeartbeat(state: RaftState, progress: Progress): void {
  const { owingBoot, matchIndex } = progress
  const attested =
    owingBoot === null ? {} : { attested: { boot: owingBoot, lastIndex: state.log.lastIndex } }
  const body = {
    type: 'heartbeatRequest',
    commit: Math.min(state.commit, matchIndex),
    readSequence: state.reads.sequence,
    ...attested,
  } as const
  state.send(progress.id, body, 0)
}
