import type { KindName } from '../../entities/kind-records.ts'
import type { Index } from '../../raft/types.ts'
import type { Touched } from './audit.ts'
import type { Authority } from './authority.ts'
import type { KindRules } from './kind-rules.ts'

/**
 * Knowledge of a command beside the state: where it stands, when and by whom, all out of the log.
 */
export interface CommandContext {
  readonly index: Index
  /** UTC ms; never running back along the log. */
  readonly logTimeMs: number
  /** The API session that it was asked with; '' where there was none. */
  readonly sessionId: string
  /** The router that acts by its certificate; '' where none does. */
  readonly routerId: string
  /** How far the rights of its caller reach. */
  readonly authority: Authority
  /** The permissions that its caller was given; they decide whom a limited authority reaches. */
  readonly held: readonly string[]
  /** Grows with each record that the entry writes for its caller, for what is remembered of it. */
  readonly touched: Touched[]
  /** Rules that judge a write of this kind beside its schema, and what follows from it. */
  readonly rulesOf: (kind: KindName) => KindRules
}
