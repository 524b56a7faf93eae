import type { Mfa } from '../../entities/kinds/mfa.ts'
import { requiredFactorByPurpose, type SecondFactors } from '../../auth/factors/second-factors.ts'
import { totpProvisioningUrl } from '../../auth/factors/provisioning.ts'
import {
  actorForPrincipal,
  writeOriginForActor,
  type SessionPrincipal,
} from '../../auth/principal/principal.ts'
import { Problem, type ProblemCode, problemTypes } from '../../lib/problems.ts'
import type { PostureService } from '../../ports/posture.ts'
import type { WriteOrigin } from '../../ports/writer.ts'
import { type RequestContext, toWriteRequest } from '../http/request-context.ts'
import { type Reply, rfc3339Text } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import {
  readFormParameters,
  jsonResponseWithoutEnvelope,
  noReferrerHeaders,
} from './oauth-responses.ts'
import {
  readFlowId,
  type LogInBody,
  type LogInStepHandlers,
  logInStepDefaults,
  refuseCrossSiteForm,
  tooManyCodesMessage,
} from './log-in-steps.ts'
import { TOTP_ENROLLMENT_FIELD, renderTotpEnrollmentPage } from './totp-enrollment-page.ts'
import type { LogInFlowPage } from './log-in-pages.ts'
import { OAUTH_FORM_BYTES_MAX, logInRequestBody } from './oidc-schemas.ts'

interface EnrollmentStepsDeps {
  readonly secondFactors: SecondFactors
  readonly posture: PostureService
}

/**
 * Operations that enroll TOTP during a log-in: an identity that has not enrolled, and whose auth
 * policy requires TOTP, cannot complete the log-in otherwise.
 */
export function totpEnrollmentOperations(
  deps: EnrollmentStepsDeps,
  logIn: LogInStepHandlers,
): Operation[] {
  const steps = new EnrollmentSteps(deps, logIn)
  const path = '/login/totp/enroll'
  const common = {
    ...logInStepDefaults,
    body: logInRequestBody,
    bodyBytesMax: OAUTH_FORM_BYTES_MAX,
  } as const
  return [
    operationWithBody({
      ...common,
      operationId: 'oidcEnrollTotp',
      summary: 'Start a TOTP enrollment during a log-in; replaces an unverified one',
      method: 'POST',
      path,
      success: 201,
      refusals: [...logInStepDefaults.refusals, 409],
      handle: (call, body) => steps.begin(call, body),
    }),
    operationWithBody({
      ...common,
      operationId: 'oidcEndTotp',
      summary: 'Remove the TOTP enrollment during a log-in; needs a code once verified',
      method: 'DELETE',
      path,
      refusals: [...logInStepDefaults.refusals, 404],
      handle: (call, body) => steps.end(call, body),
    }),
    operationWithBody({
      ...common,
      operationId: 'oidcVerifyTotp',
      summary: 'Verify the TOTP enrollment, which completes the log-in',
      method: 'POST',
      path: `${path}/verify`,
      refusals: [...logInStepDefaults.refusals, 404],
      handle: (call, body) => steps.verify(call, body),
    }),
  ]
}

class EnrollmentSteps {
  readonly #deps: EnrollmentStepsDeps
  readonly #logIn: LogInStepHandlers

  constructor(deps: EnrollmentStepsDeps, logIn: LogInStepHandlers) {
    this.#deps = deps
    this.#logIn = logIn
  }

  async begin(call: RequestContext, body: LogInBody): Promise<Reply> {
    refuseCrossSiteForm(call)
    const id = readFlowId(call, body)
    const principal = await this.#logIn.principal(call, id)
    const { secondFactors } = this.#deps
    const { id: identityId, name } = principal.identity
    try {
      const isPage = (await this.#logIn.redirectOfPage(call, id)) !== null
      const known = secondFactors.find(identityId)
      // If this log-in has created the secret, keeps it: a repeated request must not invalidate the
      // secret that the user may be scanning. Replaces the secret of an earlier log-in, because
      // another person who knows the password may have seen it.
      const isOfThisLogIn = known !== undefined && known.createdAt >= principal.session.createdAt
      if (!isPage && isOfThisLogIn) throw new Problem('MFA_EXISTS')
      await secondFactors.begin(originFor(call, principal), identityId)
      const begun = secondFactors.find(identityId)
      // Meanwhile, another request of the same flow may have verified or removed the enrollment.
      if (begun?.isVerified !== false) throw new Problem('MFA_EXISTS')
      const page = await this.#shownPage(call, id, principal, begun, { fault: '', status: 201 })
      if (page !== null) return page
      const { secret, recoveryCodes } = await secondFactors.vault.open(begun)
      const url = totpProvisioningUrl(secret, String(name))
      const shown = { ...enrollmentView(begun), provisioningUrl: url, recoveryCodes }
      return { ...jsonResponseWithoutEnvelope(shown, 201), headers: noReferrerHeaders }
    } catch (error) {
      throw await this.#withPage(call, body, principal, error)
    }
  }

  async end(call: RequestContext, body: LogInBody): Promise<Reply> {
    refuseCrossSiteForm(call)
    const principal = await this.#logIn.principal(call, readFlowId(call, body))
    try {
      await this.#prove(call, body, principal, 'end')
    } catch (error) {
      return wrongCodeAnswer(error)
    }
    return jsonResponseWithoutEnvelope({})
  }

  async verify(call: RequestContext, body: LogInBody): Promise<Reply> {
    // @guard oidc/enrollment--form
    refuseCrossSiteForm(call)
    const id = readFlowId(call, body)
    const principal = await this.#logIn.principal(call, id)
    try {
      await this.#prove(call, body, principal, 'verify')
    } catch (error) {
      const problem = await this.#withPage(call, body, principal, error)
      return wrongCodeAnswer(problem, call.refusalPage)
    }
    return await this.#logIn.goOn(call, id)
  }

  async #prove(
    call: RequestContext,
    body: LogInBody,
    principal: SessionPrincipal,
    purpose: 'verify' | 'end',
  ): Promise<void> {
    const { secondFactors, posture } = this.#deps
    const { id: identityId } = principal.identity
    const code = readFormParameters(body)('code') ?? ''
    const given = { purpose, code, address: call.credentials.address } as const
    await secondFactors.prove(
      originFor(call, principal),
      identityId,
      given,
      requiredFactorByPurpose[purpose],
    )
    await posture.factorMoved(identityId)
  }

  /**
   * Adds a page to an error that the user can resolve: the enrollment page, if the form came from
   * that page and its secret is still the unverified one, otherwise the factor page.
   * @returns the error.
   */
  async #withPage(
    call: RequestContext,
    body: LogInBody,
    principal: SessionPrincipal,
    error: unknown,
  ): Promise<unknown> {
    if (!(error instanceof Problem) || !isShown(error.code)) return error
    const id = readFlowId(call, body)
    const { id: identityId } = principal.identity
    const { http: status } = problemTypes[error.code]
    const found = this.#deps.secondFactors.find(identityId)
    const shownId = readFormParameters(body)(TOTP_ENROLLMENT_FIELD)
    // A caller who knows only the password has never seen the page with the secret, so the caller
    // cannot send its id.
    // @guard oidc/enrollment--shown, oidc/enrollment--verified
    if (found?.isVerified === false && found.secretId === shownId) {
      const failure = { fault: faults[error.code], status }
      call.refusalPage = await this.#shownPage(call, id, principal, found, failure)
      return error
    }
    const fault = found?.isVerified === true ? faults.MFA_EXISTS : faults.NOT_FOUND
    call.refusalPage = await this.#logIn.factorPage(call, id, identityId, { fault, status })
    return error
  }

  /** The enrollment page; null if the client shows no pages. */
  async #shownPage(
    call: RequestContext,
    id: string,
    { identity }: SessionPrincipal,
    begun: Mfa,
    failure: Pick<LogInFlowPage, 'fault' | 'status'>,
  ): Promise<Reply | null> {
    const redirectUri = await this.#logIn.redirectOfPage(call, id)
    if (redirectUri === null) return null
    const factor = await this.#deps.secondFactors.vault.open(begun)
    const { secretId } = begun
    const shown = { secretId, factor, identityName: identity.name }
    return renderTotpEnrollmentPage({ id, redirectUri, ...failure }, shown)
  }
}

/** Messages on the page for errors that the user can resolve. */
const faults = {
  MFA_INVALID_TOKEN: 'That code is not right. Take the one that the app shows now.',
  MFA_EXISTS: 'An app is set up already. Enter its code.',
  NOT_FOUND: 'That app was replaced or removed by another log-in. Set up one again.',
  SERVER_TOO_MANY_REQUESTS: tooManyCodesMessage,
} as const

function isShown(code: ProblemCode): code is keyof typeof faults {
  return Object.hasOwn(faults, code)
}

function wrongCodeAnswer(error: unknown, page: Reply | null = null): Reply {
  if (!(error instanceof Problem) || error.code !== 'MFA_INVALID_TOKEN') throw error
  const wrong = { code: error.code, message: 'the code is not right' }
  return page ?? jsonResponseWithoutEnvelope(wrong, problemTypes.MFA_INVALID_TOKEN.http)
}

function originFor(call: RequestContext, principal: SessionPrincipal): WriteOrigin {
  return writeOriginForActor(toWriteRequest(call), actorForPrincipal(principal))
}

function enrollmentView({ id, createdAt, updatedAt }: Mfa) {
  return {
    id,
    createdAt: rfc3339Text(createdAt),
    updatedAt: rfc3339Text(updatedAt),
    tags: {},
    isVerified: false,
  }
}
