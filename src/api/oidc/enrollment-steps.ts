import type { Mfa } from '../../entities/kinds/mfa.ts'
import { requiredFor, type SecondFactors } from '../../auth/factors/second-factors.ts'
import { provisioningUrl } from '../../auth/factors/provisioning.ts'
import { actorOf, originBy, type SessionPrincipal } from '../../auth/principal/principal.ts'
import { Problem } from '../../lib/problems.ts'
import type { PostureService } from '../../ports/posture.ts'
import type { WriteOrigin } from '../../ports/writer.ts'
import { type RequestContext, writeRequestOf } from '../call.ts'
import { type Reply, timeText } from '../answers/envelope.ts'
import { type Operation, withBody } from '../operation.ts'
import { formParametersOf, jsonAnswer, neverReferred } from './oauth-answers.ts'
import { idIn, type LogInBody, type LogInSteps, logInStep, requireOwnForm } from './log-in-steps.ts'
import { FORM_BYTES_MAX, logInBody } from './oidc-schemas.ts'

interface Needs {
  readonly secondFactors: SecondFactors
  readonly posture: PostureService
}

/** Enrollment of TOTP amid a log-in, for an identity whose policy asks for a factor it lacks. */
export function enrollmentStepOperations(needs: Needs, logIn: LogInSteps): Operation[] {
  const steps = new EnrollmentSteps(needs, logIn)
  const path = '/login/totp/enroll'
  const common = {
    ...logInStep,
    body: logInBody,
    bodyBytesMax: FORM_BYTES_MAX,
  } as const
  return [
    withBody({
      ...common,
      operationId: 'oidcEnrollTotp',
      summary: 'Start a TOTP enrollment amid a log-in; replaces an unverified one',
      method: 'POST',
      path,
      success: 201,
      refusals: [...logInStep.refusals, 409],
      handle: (call, body) => steps.begin(call, body),
    }),
    withBody({
      ...common,
      operationId: 'oidcEndTotp',
      summary: 'Remove the TOTP enrollment amid a log-in; needs a code once verified',
      method: 'DELETE',
      path,
      refusals: [...logInStep.refusals, 404],
      handle: (call, body) => steps.end(call, body),
    }),
    withBody({
      ...common,
      operationId: 'oidcVerifyTotp',
      summary: 'Verify the TOTP enrollment, which completes the log-in',
      method: 'POST',
      path: `${path}/verify`,
      refusals: [...logInStep.refusals, 404],
      handle: (call, body) => steps.verify(call, body),
    }),
  ]
}

class EnrollmentSteps {
  readonly #needs: Needs
  readonly #logIn: LogInSteps

  constructor(needs: Needs, logIn: LogInSteps) {
    this.#needs = needs
    this.#logIn = logIn
  }

  async begin(call: RequestContext, body: LogInBody): Promise<Reply> {
    requireOwnForm(call)
    const principal = await this.#logIn.principal(call, idIn(call, body))
    const { secondFactors } = this.#needs
    const { id: identityId, name } = principal.identity
    await secondFactors.begin(originFor(call, principal), identityId)
    const begun = secondFactors.find(identityId)
    // Another step under the same id may have verified it, or taken it away, meanwhile.
    if (begun?.isVerified !== false) throw new Problem('MFA_EXISTS')
    const { secret, recoveryCodes } = await secondFactors.vault.open(begun)
    const url = provisioningUrl(secret, String(name))
    const shown = { ...enrollmentView(begun), provisioningUrl: url, recoveryCodes }
    return { ...jsonAnswer(shown, 201), headers: neverReferred }
  }

  async end(call: RequestContext, body: LogInBody): Promise<Reply> {
    const wrong = await this.#prove(call, body, 'end')
    return wrong ?? jsonAnswer({})
  }

  async verify(call: RequestContext, body: LogInBody): Promise<Reply> {
    const wrong = await this.#prove(call, body, 'verify')
    return wrong ?? (await this.#logIn.goOn(call, idIn(call, body)))
  }

  /** @returns the refusal of a wrong code, which clients of the family know by its status 400. */
  async #prove(
    call: RequestContext,
    body: LogInBody,
    purpose: 'verify' | 'end',
  ): Promise<Reply | null> {
    requireOwnForm(call)
    const { secondFactors, posture } = this.#needs
    const principal = await this.#logIn.principal(call, idIn(call, body))
    const { id: identityId } = principal.identity
    const code = formParametersOf(body)('code') ?? ''
    const given = { purpose, code, address: call.credentials.address } as const
    try {
      const origin = originFor(call, principal)
      await secondFactors.prove(origin, identityId, given, requiredFor[purpose])
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== 'MFA_INVALID_TOKEN') throw error
      return jsonAnswer({ code: error.code, message: 'the code is not right' }, 400)
    }
    await posture.factorMoved(identityId)
    return null
  }
}

function originFor(call: RequestContext, principal: SessionPrincipal): WriteOrigin {
  return originBy(writeRequestOf(call), actorOf(principal))
}

function enrollmentView({ id, createdAt, updatedAt }: Mfa) {
  return {
    id,
    createdAt: timeText(createdAt),
    updatedAt: timeText(updatedAt),
    tags: {},
    isVerified: false,
  }
}
