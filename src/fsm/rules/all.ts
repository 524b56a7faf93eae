import type { KindRules } from './kind-rules.ts'
import { authPolicyRules } from './auth-policy.ts'
import { authenticatorRules } from './authenticator.ts'
import { caRules } from './ca.ts'
import { configTypeRules } from './config-type.ts'
import { enrollmentRules } from './enrollment.ts'
import { identityRules } from './identity.ts'
import { edgeRouterRules, fabricRouterRules, transitRouterRules } from './router.ts'
import { externalJwtSignerRules } from './external-jwt-signer.ts'
import { postureCheckRules } from './posture-check.ts'
import { revocationRules } from './revocation.ts'
import { serviceRules } from './service.ts'
import { fabricTerminatorRules, terminatorRules } from './terminator.ts'

const none: KindRules = {}

const byKind: ReadonlyMap<string, KindRules> = new Map<string, KindRules>([
  ['authPolicy', authPolicyRules],
  ['authenticator', authenticatorRules],
  ['ca', caRules],
  ['configType', configTypeRules],
  ['edgeRouter', edgeRouterRules],
  ['enrollment', enrollmentRules],
  ['fabricRouter', fabricRouterRules],
  ['fabricTerminator', fabricTerminatorRules],
  ['identity', identityRules],
  ['router', transitRouterRules],
  ['externalJwtSigner', externalJwtSignerRules],
  ['postureCheck', postureCheckRules],
  ['revocation', revocationRules],
  ['service', serviceRules],
  ['terminator', terminatorRules],
  ['transitRouter', transitRouterRules],
])

/** Of a kind without any: none. */
export function rulesOf(kind: string): KindRules {
  return byKind.get(kind) ?? none
}
