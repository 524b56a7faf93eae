import type { Progress } from './progress.ts'
import type { RaftState } from './state.ts'

/** Sends a heartbeat. Its commit index never exceeds the match index of the peer. */
export function sendHeartbeat(state: RaftState, progress: Progress): void {
  // @guard 07-follower-commits-past-what-matched:2, 38-commit-told-beyond-the-log:2
  const { owingBoot, matchIndex } = progress
  const attested =
    owingBoot === null ? {} : { attested: { boot: owingBoot, lastIndex: state.log.lastIndex } }
  const body = {
    type: 'heartbeatRequest',
    // @guard 07-follower-commits-past-what-matched:3, 38-commit-told-beyond-the-log:3
    commit: Math.min(state.commit, matchIndex),
    readSequence: state.reads.sequence,
    ...attested,
  } as const
  // @guard 40-heartbeats-wait-for-the-disk
  state.send(progress.id, body, 0)
}
