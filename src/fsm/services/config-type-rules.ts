import type { ConfigType } from '../../entities/kinds/config-type.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { fieldFaultOutcome } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'
import type { KindRules, ValidatedWrite } from '../apply/command-context.ts'

export const configTypeRules: KindRules<ConfigType> = { judgeWrite: judgeConfigType }

/** Refuses the name `all`, which clients use for "every type". */
function judgeConfigType(_state: State, { after }: ValidatedWrite<ConfigType>): Outcome | null {
  if (after.name !== 'all') return null
  return fieldFaultOutcome({
    field: 'name',
    reason: 'all is reserved for every config type',
    value: 'all',
  })
}
