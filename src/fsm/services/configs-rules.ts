import type { Router } from '../../entities/kinds/router.ts'
import type { Service } from '../../entities/kinds/service.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { fieldFaultOutcome } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'
import type { ValidatedWrite } from '../apply/command-context.ts'

/**
 * Checks the configs that a record references: each config type must be allowed for the kind, and
 * must occur only once.
 */
export function checkConfigTypes(
  state: State,
  { before, after }: ValidatedWrite<Router | Service>,
  target: 'service' | 'router',
): Outcome | null {
  const { configs } = after
  if (configs === undefined || configs === before?.configs) return null
  const typesSeen = new Map<string, string>()
  for (const id of configs) {
    const typeId = state.get('config', id)?.configTypeId ?? ''
    const type = state.get('configType', typeId)
    const name = type?.name ?? typeId
    if (type?.target !== target) {
      const reason = `config ${id} is of the type ${name}, which is not for ${target}s`
      return fieldFaultOutcome({ field: 'configs', reason, value: id })
    }
    const other = typesSeen.get(typeId)
    if (other !== undefined) {
      const reason = `duplicate config types: ${other} and ${id} are both of the type ${name}`
      return fieldFaultOutcome({ field: 'configs', reason, value: id })
    }
    typesSeen.set(typeId, id)
  }
  return null
}
