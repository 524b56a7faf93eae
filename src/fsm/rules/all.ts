import type { KindRules } from './kind-rules.ts'
import { authPolicyRules } from './auth-policy.ts'
import { authenticatorRules } from './authenticator.ts'
import { caRules } from './ca.ts'
import { configTypeRules } from './config-type.ts'
import { externalJwtSignerRules } from './external-jwt-signer.ts'
import { identityRules } from './identity.ts'
import { postureCheckRules } from './posture-check.ts'
import { revocationRules } from './revocation.ts'
import { serviceRules } from './service.ts'

const none: KindRules = {}

const byKind: ReadonlyMap<string, KindRules> = new Map<string, KindRules>([
  ['authPolicy', authPolicyRules],
  ['authenticator', authenticatorRules],
  ['ca', caRules],
  ['configType', configTypeRules],
  ['externalJwtSigner', externalJwtSignerRules],
  ['identity', identityRules],
  ['postureCheck', postureCheckRules],
  ['revocation', revocationRules],
  ['service', serviceRules],
])

/** Of a kind without any: none. */
export function rulesOf(kind: string): KindRules {
  return byKind.get(kind) ?? none
}
