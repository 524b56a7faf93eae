import type { Index } from '../../raft/types.ts'

/** What a command may know beside the state: where it stands and when, both out of the log. */
export interface CommandContext {
  readonly index: Index
  /** UTC ms; never running back along the log. */
  readonly logTimeMs: number
}
