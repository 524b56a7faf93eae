import type { KindRules } from './kind-rules.ts'
import { authenticatorRules } from './authenticator.ts'
import { configTypeRules } from './config-type.ts'
import { enrollmentRules } from './enrollment.ts'
import { identityRules } from './identity.ts'
import { edgeRouterRules, fabricRouterRules, transitRouterRules } from './router.ts'
import { serviceRules } from './service.ts'
import { fabricTerminatorRules, terminatorRules } from './terminator.ts'

const none: KindRules = {}

const byKind: ReadonlyMap<string, KindRules> = new Map<string, KindRules>([
  ['authenticator', authenticatorRules],
  ['configType', configTypeRules],
  ['edgeRouter', edgeRouterRules],
  ['enrollment', enrollmentRules],
  ['fabricRouter', fabricRouterRules],
  ['fabricTerminator', fabricTerminatorRules],
  ['identity', identityRules],
  ['router', transitRouterRules],
  ['service', serviceRules],
  ['terminator', terminatorRules],
  ['transitRouter', transitRouterRules],
])

/** Of a kind without any: none. */
export function rulesOf(kind: string): KindRules {
  return byKind.get(kind) ?? none
}
