import { describe, expect, test } from 'vitest'

import { combineAdmissionAnswers } from '../../src/cli/bootstrap/still-admitted.ts'
import type {
  AdmissionOutcome,
  AdmissionRefusalReason,
} from '../../src/cluster/membership/decide-admission.ts'
import { Problem } from '../../src/lib/problems.ts'

// Goal: a removed controller that still responds cannot make an operator move valid files away.

const refused = (reason: AdmissionRefusalReason): AdmissionOutcome => ({
  outcome: 'refused',
  reason,
  detail: `refused: ${reason}`,
  configurationIndex: 1,
})
const silence = (): Promise<never> =>
  Promise.reject(new Problem('PEER_UNREACHABLE', { detail: 'no response' }))

/** Resolves after all answers that are available immediately. */
async function later(outcome: AdmissionOutcome): Promise<AdmissionOutcome> {
  await new Promise(setImmediate)
  return outcome
}

describe('the responses of several members', () => {
  test.each(['too-old', 'store-in-use'] as const)(
    'admit the controller if a later answer is %s, although the first answer is a refusal',
    async (reason) => {
      const first = Promise.resolve(refused('removed'))
      const combined = await combineAdmissionAnswers([first, silence(), later(refused(reason))])
      expect(combined).toEqual(refused(reason))
    },
  )

  test('admit the controller without the answers of members that have not responded yet', async () => {
    const never = new Promise<AdmissionOutcome>(() => undefined)
    const admitted = refused('too-old')
    expect(await combineAdmissionAnswers([never, later(admitted)])).toEqual(admitted)
  })

  test('refuse the controller if all members that responded refuse it', async () => {
    const answers = [silence(), later(refused('removed')), Promise.resolve(refused('removed'))]
    expect(await combineAdmissionAnswers(answers)).toEqual(refused('removed'))
  })

  test('decide nothing if no member responded, or if no address of a member is known', async () => {
    expect(await combineAdmissionAnswers([silence(), silence()])).toBe('no response; no response')
    expect(await combineAdmissionAnswers([])).toBe('their addresses are not known')
  })
})
