import type { PostureCheck } from '../../entities/posture-check.ts'
import type { ServicePolicy } from '../../entities/service-policy.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { PromptedService, Prompts } from '../../ports/state-view.ts'
import type { ShownFactor } from '../../ports/posture.ts'
import { members, policiesMatching } from '../roles.ts'
import type { State } from '../state.ts'
import { promptedTimes } from './factor-judge.ts'
import { checksOf } from './posture.ts'

/** Services named in one answer; whoever has more of them sees their posture queries. */
export const promptedServicesMax = 1000

/**
 * The services of an identity for which a code must be given again soon, as its machine has woken or was unlocked; in id order.
 * Of several checks, the shortest timeout is told.
 */
export function promptedServices(
  state: State,
  identity: EntityRecord,
  prompts: Prompts,
  factor: ShownFactor,
): readonly PromptedService[] {
  const table = state.table('servicePolicy')
  const found = new Map<string, PromptedService>()
  for (const policy of policiesMatching<ServicePolicy>(table, 'identityRoles', identity)) {
    const checks = checksOf(state, policy).filter((check) => isAsked(check, prompts))
    const times = checks.flatMap((check) => promptedTimes(check, factor) ?? [])
    if (times.length === 0) continue
    const [shortest] = times.sort((a, b) => orderOf(a.timeout) - orderOf(b.timeout))
    const { serviceRoles: roles, semantic } = policy
    for (const id of members(state, 'service', [{ roles, semantic }])) {
      const known = found.get(id)
      if (shortest === undefined) continue
      if (known === undefined && found.size >= promptedServicesMax) break
      if (known !== undefined && orderOf(known.timeout) <= orderOf(shortest.timeout)) continue
      const name = state.get('service', id)?.['name']
      found.set(id, { id, name: typeof name === 'string' ? name : '', ...shortest })
    }
  }
  return [...found.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** None is longer than any. */
function orderOf(timeout: number): number {
  return timeout < 0 ? Infinity : timeout
}

function isAsked(check: PostureCheck, { isWoken, isUnlocked }: Prompts): boolean {
  if (check.typeId !== 'MFA') return false
  return (isWoken && check.promptOnWake) || (isUnlocked && check.promptOnUnlock)
}
