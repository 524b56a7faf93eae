import { judgeConfigs } from './configs.ts'
import type { KindRules } from './kind-rules.ts'

export const serviceRules: KindRules = {
  judgeWrite: (state, write) => judgeConfigs(state, write, 'service'),
}
