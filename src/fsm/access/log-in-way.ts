import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import { identityAuthPolicy } from '../apply/authentication.ts'
import { enabledSigner, acceptsTokensOf } from '../apply/external-tokens.ts'
import type { State } from '../records/state.ts'

/** Whether an identity can log in; `notAllowed`: its auth policy takes nothing that it has. */
export type LogInWay = 'some' | 'none' | 'notAllowed'

/** Acts by the certificate of its router, and logs in nowhere. */
const ROUTER_TYPE = 'Router'

/** Whether the identity has anything that its auth policy lets it log in by. */
export function logInWay(state: State, identity: Identity): LogInWay {
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
    if (!acceptsTokensOf(policy, id)) continue
    const signer: ExternalJwtSigner | undefined = enabledSigner(state, id)
    if (signer === undefined) continue
    // Its tokens name identities by their id, unless they do by the external one.
    if (!signer.useExternalId || (identity.externalId ?? '') !== '') return 'some'
  }
  return hasAny ? 'notAllowed' : 'none'
}
