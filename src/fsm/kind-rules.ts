import type { KindName, RecordOf } from '../entities/kind-records.ts'
import type { KindRules } from './apply/command-context.ts'
import { apiSessionRules } from './sessions/api-session-rules.ts'
import { authPolicyRules } from './identities/auth-policy-rules.ts'
import { authenticatorRules } from './identities/authenticator-rules.ts'
import { caRules } from './enrollment/ca-rules.ts'
import { configTypeRules } from './services/config-type-rules.ts'
import { enrollmentRules } from './enrollment/enrollment-rules.ts'
import { identityRules } from './identities/identity-rules.ts'
import { edgeRouterRules, fabricRouterRules, transitRouterRules } from './services/router-rules.ts'
import { externalJwtSignerRules } from './sessions/external-jwt-signer-rules.ts'
import { postureCheckRules } from './services/posture-check-rules.ts'
import { revocationRules } from './sessions/revocation-rules.ts'
import { servicePolicyRules } from './services/service-policy-rules.ts'
import { serviceRules } from './services/service-rules.ts'
import { fabricTerminatorRules, terminatorRules } from './services/terminator-rules.ts'

const none: KindRules = {}

const byKind: { readonly [K in KindName]?: KindRules<RecordOf<K>> } = {
  apiSession: apiSessionRules,
  authPolicy: authPolicyRules,
  authenticator: authenticatorRules,
  ca: caRules,
  configType: configTypeRules,
  edgeRouter: edgeRouterRules,
  enrollment: enrollmentRules,
  externalJwtSigner: externalJwtSignerRules,
  fabricRouter: fabricRouterRules,
  fabricTerminator: fabricTerminatorRules,
  identity: identityRules,
  postureCheck: postureCheckRules,
  revocation: revocationRules,
  router: transitRouterRules,
  service: serviceRules,
  servicePolicy: servicePolicyRules,
  terminator: terminatorRules,
  transitRouter: transitRouterRules,
}

/** Rules of a kind. The object is empty for a kind without rules. */
export function rulesForKind(kind: KindName): KindRules {
  return byKind[kind] ?? none
}
