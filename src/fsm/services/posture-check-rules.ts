import { postureFields, type PostureType } from '../../entities/kinds/posture-check.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { faulty } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'
import type { KindRules, Write } from '../apply/kind-rules.ts'

export const postureCheckRules: KindRules = { judgeWrite: judgePostureCheck }

/** A check without what its type is about would pass or fail for everybody. */
function judgePostureCheck(_state: State, { after }: Write): Outcome | null {
  const type = after['typeId'] as PostureType
  if (!Object.hasOwn(postureFields, type)) {
    const reason = `typeId in body should be one of [${Object.keys(postureFields).join(' ')}]`
    return faulty({ field: 'typeId', reason, value: type })
  }
  const missing = postureFields[type].required.find((name) => isEmpty(after[name]))
  return missing === undefined ? null : faulty({ field: missing, reason: `${missing} is required` })
}

function isEmpty(value: Json | undefined): boolean {
  if (value === undefined || value === null || value === '') return true
  return Array.isArray(value) && value.length === 0
}
