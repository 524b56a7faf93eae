import { canonicalJson, type JsonObject } from '../lib/text/canonical-json.ts'
import { Problem } from '../lib/problems.ts'
import type { PostureFailure } from '../ports/posture.ts'

/** A failed request whose checks ask for much is kept without what they ask for. */
const FAILURE_CHARACTERS_MAX = 8192

/** Answer to a refused client, and what is kept of its request. */
export function refusal(
  failures: readonly PostureFailure[],
  cause: Problem,
): { readonly problem: Problem; readonly request: readonly JsonObject[] } {
  const causeData = Object.fromEntries(
    failures.map(({ policyId, checks }) => [
      policyId,
      checks.map(({ id, typeId }) => ({ id, typeId, isPassing: false })),
    ]),
  )
  return {
    problem: new Problem('INVALID_POSTURE', { causeData, cause }),
    request: shownFailures(failures),
  }
}

/** Failures as the record of a failed request shows them. */
function shownFailures(failures: readonly PostureFailure[]): JsonObject[] {
  const shown = (isWhole: boolean): JsonObject[] =>
    failures.map(({ policyId, policyName, checks }) => ({
      policyId,
      policyName,
      checks: checks.map(({ id, name, typeId, values }) => ({
        postureCheckId: id,
        postureCheckName: name,
        postureCheckType: typeId,
        ...(isWhole ? values : {}),
      })),
    }))
  const whole = shown(true)
  return canonicalJson(whole).length <= FAILURE_CHARACTERS_MAX ? whole : shown(false)
}
