import type { KindRules } from './kind-rules.ts'
import { authenticatorRules } from './authenticator.ts'
import { configTypeRules } from './config-type.ts'
import { identityRules } from './identity.ts'
import { serviceRules } from './service.ts'

const none: KindRules = {}

const byKind: ReadonlyMap<string, KindRules> = new Map<string, KindRules>([
  ['authenticator', authenticatorRules],
  ['configType', configTypeRules],
  ['identity', identityRules],
  ['service', serviceRules],
])

/** Of a kind without any: none. */
export function rulesOf(kind: string): KindRules {
  return byKind.get(kind) ?? none
}
