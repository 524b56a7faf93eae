import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import { identityAuthPolicy } from '../apply/authentication.ts'
import { findEnabledSigner, acceptsSignerTokens } from '../apply/external-tokens.ts'
import type { State } from '../records/state.ts'

/**
 * Whether an identity has a usable credential. `notAllowed`: it has credentials, but its auth
 * policy accepts none of them.
 */
export type LogInAbility = 'some' | 'none' | 'notAllowed'

/**
 * An identity of this type belongs to a router, which uses its own certificate and never logs in.
 */
const ROUTER_TYPE = 'Router'

/** Whether the identity has a credential that its auth policy accepts. */
export function logInAbility(state: State, identity: Identity): LogInAbility {
  if (identity.typeId === ROUTER_TYPE) return 'some'
  const policy = identityAuthPolicy(state, identity)
  let hasAny = false
  for (const id of state.table('authenticator').indexes.ids('identityId', identity.id)) {
    const method = state.get('authenticator', id)?.method
    if (method === undefined) continue
    if (policy?.primary[method].allowed === true) return 'some'
    hasAny = true
  }
  for (const id of state.table('externalJwtSigner').ids) {
    if (!acceptsSignerTokens(policy, id)) continue
    const signer: ExternalJwtSigner | undefined = findEnabledSigner(state, id)
    if (signer === undefined) continue
    // Tokens of the signer contain the id of an identity. If the signer's `useExternalId` is set,
    // they contain its external id, so only an identity with an external id can use them.
    if (!signer.useExternalId || (identity.externalId ?? '') !== '') return 'some'
  }
  return hasAny ? 'notAllowed' : 'none'
}
