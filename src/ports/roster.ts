import type { Index } from '../raft/types.ts'

/**
 * Who the members are as far as is known to be committed, kept beside log and state: whom to let in and to dial before the
 * own log says so.
 */
export interface RosterRecord {
  /** membership.v1.Configuration, encoded. */
  readonly configuration: Uint8Array
  /** Log index as of which it is in force. */
  readonly index: Index
  /** mesh.v1.AddressClaim each, encoded and signed: where members have said they are reached. */
  readonly claims: readonly Uint8Array[]
}
