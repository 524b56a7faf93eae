import type { Service } from '../../entities/kinds/service.ts'
import { checkConfigTypes } from './configs-rules.ts'
import type { KindRules } from '../apply/command-context.ts'

export const serviceRules: KindRules<Service> = {
  judgeWrite: (state, write) => checkConfigTypes(state, write, 'service'),
}
