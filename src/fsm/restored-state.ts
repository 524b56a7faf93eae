import { apiSession } from '../entities/kinds/api-session.ts'
import type { RecordOf, KindName } from '../entities/kind-records.ts'
import type { JsonObject } from '../lib/text/canonical-json.ts'
import {
  type SecretVersion,
  type SharedSecretName,
  sharedSecretNames,
} from '../lib/shared-secrets.ts'
import type { Index, Position } from '../raft/types.ts'
import { applyAllExpiries } from './expiry/apply-expiries.ts'
import { applyAccessEffects } from './access/access-effects.ts'
import type { CommandContext } from './apply/command-context.ts'
import { withdrawPrivilegedEnrollments } from './apply/withdraw-enrollments.ts'
import { removeWithReferences } from './apply/references.ts'
import { rulesForKind } from './kind-rules.ts'
import type { State } from './records/state.ts'
import type { ClusterState } from './access/cluster-state.ts'

/**
 * The new cluster to which a restored state belongs: one controller, a new cluster id and new
 * secrets.
 */
interface RestoredCluster {
  readonly clusterId: string
  /** Encoded membership.v1.Configuration with this one controller. */
  readonly configuration: Uint8Array
  readonly admission: JsonObject & Pick<RecordOf<'admission'>, 'id'>
  /** Every version of every shared secret, wrapped only for this one controller. */
  readonly secrets: Readonly<Record<SharedSecretName, readonly SecretVersion[]>>
  /** UTC ms. */
  readonly timeMs: number
}

/**
 * Converts the state of one cluster to the initial state of another, as one step after its last
 * entry: sessions end, and the former controllers, join tickets, shared secrets, and the open
 * enrollments of privileged identities and of routers with permitted names, are removed or
 * replaced; all other records stay. The term is one higher than the last, because no node has voted
 * in that term.
 * @returns the new position.
 */
export function convertToNewCluster(state: ClusterState, restored: RestoredCluster): Position {
  const index = state.position.index + 1
  const logTimeMs = Math.max(state.logTimeMs, restored.timeMs)
  const context = restoreContext(index, logTimeMs)
  state.logTimeMs = logTimeMs
  state.forget()
  state.staged.clear()
  endSessions(state, context)
  // @guard enrollments-read-before-a-promotion--cluster
  withdrawPrivilegedEnrollments(state, context)
  removeAll(state, 'joinTicket')
  removeAll(state, 'admission')
  put(state, 'admission', restored.admission, context)
  for (const name of sharedSecretNames) {
    put(state, 'sharedSecret', { id: name, versions: restored.secrets[name] }, context)
  }
  applyAllExpiries(state, context)
  applyAccessEffects(state, context)
  state.clusterId = restored.clusterId
  state.configuration = Uint8Array.from(restored.configuration)
  state.position = { term: state.position.term + 1, index }
  return state.position
}

/**
 * Removes the sessions in a backup before its records are restored into a running cluster: a
 * restore must not reopen sessions.
 */
export function removeSessions(state: State): void {
  const { position, logTimeMs } = state
  endSessions(state, restoreContext(position.index, logTimeMs))
}

/** Command context of a restore, which acts for no caller. */
function restoreContext(index: Index, logTimeMs: number): CommandContext {
  return {
    index,
    logTimeMs,
    sessionId: '',
    routerId: '',
    authority: 'full',
    held: [],
    touched: [],
    rulesOf: rulesForKind,
  }
}

/** Ends all API sessions, and with them their service sessions and session certificates. */
function endSessions(state: State, context: CommandContext): void {
  for (const id of Array.from(state.table('apiSession').ids)) {
    const session = state.get('apiSession', id)
    if (session !== undefined) removeWithReferences(state, apiSession, session, context)
  }
}

function removeAll(state: State, kind: KindName): void {
  for (const id of Array.from(state.table(kind).ids)) state.remove(kind, id)
}

function put(
  state: State,
  kind: KindName,
  values: JsonObject & { readonly id: string },
  { index: revision, logTimeMs }: CommandContext,
): void {
  const createdAt = state.get(kind, values.id)?.createdAt ?? logTimeMs
  state.put(kind, { ...values, createdAt, updatedAt: logTimeMs, revision })
}
