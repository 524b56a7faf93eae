import type { Service } from '../../entities/kinds/service.ts'
import { judgeConfigs } from './configs-rules.ts'
import type { KindRules } from '../apply/context.ts'

export const serviceRules: KindRules<Service> = {
  judgeWrite: (state, write) => judgeConfigs(state, write, 'service'),
}
