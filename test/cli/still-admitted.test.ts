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
    'show that the controller is still admitted if a later one is the refusal %s, although the first one says that the controller was removed',
    async (reason) => {
      const first = Promise.resolve(refused('removed'))
      const combined = await combineAdmissionAnswers([first, silence(), later(refused(reason))])
      expect(combined).toEqual(refused(reason))
    },
  )

  test('can show that the controller is still admitted before all members have responded', async () => {
    const never = new Promise<AdmissionOutcome>(() => undefined)
    const admitted = refused('too-old')
    expect(await combineAdmissionAnswers([never, later(admitted)])).toEqual(admitted)
  })

  test('show that the controller was removed if all members that responded say so', async () => {
    const answers = [silence(), later(refused('removed')), Promise.resolve(refused('removed'))]
    expect(await combineAdmissionAnswers(answers)).toEqual(refused('removed'))
  })

  test('decide nothing if no member responded, or if no address of a member is known', async () => {
    expect(await combineAdmissionAnswers([silence(), silence()])).toBe('no response; no response')
    expect(await combineAdmissionAnswers([])).toBe('their addresses are not known')
  })
})
