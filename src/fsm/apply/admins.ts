import { isDisabled } from '../../lib/is-disabled.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { KindName, RecordOf } from '../../entities/kind-records.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { RecordSource } from '../../ports/state-view.ts'
import { allowsPasswordWithoutJwt, identityAuthPolicy } from './authentication.ts'
import type { State } from '../records/state.ts'

/** One write to a record; `after` is undefined for a deletion. */
interface AdminChange {
  readonly kind: KindName
  readonly id: string
  readonly after: JsonObject | undefined
}

type Condition = (records: RecordSource, identity: Identity) => boolean

/**
 * Reason why a change would leave the network without a usable administrator; null if an
 * administrator remains. The change must not remove the last administrator, the last enabled one,
 * or the last one whose password is sufficient for a fully authenticated session (with a TOTP code
 * if required).
 */
export function adminLossReason(state: State, change: AdminChange, atMs: number): string | null {
  const isEnabled: Condition = (_records, identity) => !isDisabled(identity, atMs)
  const canLogIn: Condition = (records, identity) =>
    isEnabled(records, identity) &&
    allowsPasswordWithoutJwt(identityAuthPolicy(records, identity)) &&
    hasPassword(state, records, identity)
  const after = withChange(state, change)
  // @guard last-administrator
  for (const [condition, reason] of [
    [() => true, 'it is the last administrator; make another identity an administrator first'],
    [isEnabled, lastEnabledReason],
    [canLogIn, lastAbleReason],
  ] as const) {
    if (!someAdmin(state, after, condition) && someAdmin(state, state, condition)) return reason
  }
  return null
}

const lastEnabledReason =
  'it is the last administrator that is not disabled; make another identity an administrator first'
const lastAbleReason =
  'no administrator could log in after it; give another one a password and an auth policy that takes it without a JWT'

/**
 * Whether some administrator meets the condition. Checks only identities that were administrators
 * before, because a change that removes rights creates no administrator.
 */
function someAdmin(state: State, records: RecordSource, condition: Condition): boolean {
  for (const id of state.table('identity').indexes.ids('isAdmin', 'true')) {
    const identity = records.get('identity', id)
    if (identity?.isAdmin === true && condition(records, identity)) return true
  }
  return false
}

function hasPassword(state: State, records: RecordSource, { id }: Identity): boolean {
  for (const credentialId of state.table('authenticator').indexes.ids('identityId', id)) {
    if (records.get('authenticator', credentialId)?.method === 'updb') return true
  }
  return false
}

function withChange(state: State, { kind, id, after }: AdminChange): RecordSource {
  return {
    get: <K extends KindName>(of: K, wanted: string) =>
      of === kind && wanted === id ? (after as RecordOf<K> | undefined) : state.get(of, wanted),
  }
}
