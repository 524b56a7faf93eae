import { judgeConfigs } from './configs-rules.ts'
import type { KindRules } from '../apply/context.ts'

export const serviceRules: KindRules = {
  judgeWrite: (state, write) => judgeConfigs(state, write, 'service'),
}
