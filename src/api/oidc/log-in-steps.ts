import { encodeFlowCertificateRequest } from '../../auth/oidc/token-key-binding.ts'
import type { LogInStepResult } from '../../auth/oidc/flow-steps.ts'
import type { LogInFlow } from '../../auth/oidc/log-in-flow.ts'
import { type LogInCredential, logInProblem } from '../../auth/log-in/log-in.ts'
import type { SecondFactors } from '../../auth/factors/second-factors.ts'
import {
  actorForPrincipal,
  writeOriginForActor,
  type SessionPrincipal,
} from '../../auth/principal/principal.ts'
import { Problem, problemTypes } from '../../lib/problems.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Mfa } from '../../entities/kinds/mfa.ts'
import type { PendingFactor } from '../../fsm/apply/authentication.ts'
import { type RequestContext, toWriteRequest } from '../http/request-context.ts'
import { wwwAuthenticateValue } from '../http/responses/www-authenticate.ts'
import type { Reply } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { toAuthQuery } from '../sessions/session-view.ts'
import {
  readFormParameters,
  addQueryParameters,
  jsonResponseWithoutEnvelope,
  noReferrerHeaders,
  readRequestParameters,
  redirectResponse,
} from './oauth-responses.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'
import {
  OAUTH_FORM_BYTES_MAX,
  logInRequestBody,
  type logInFormSchema,
  oidcOperationDefaults,
} from './oidc-schemas.ts'
import { renderLogInPage, type LogInFlowPage, renderExternalTokenPage } from './log-in-pages.ts'

interface LogInStepsDeps {
  readonly state: StateView
  readonly oidcFlow: LogInFlow
  readonly secondFactors: SecondFactors
}

/** Body of a log-in step: a form, or JSON with the same field names. */
export type LogInBody = string | Partial<SchemaValue<typeof logInFormSchema.schema>>

/** Properties that all steps of a log-in share. */
export const logInStepDefaults = {
  ...oidcOperationDefaults,
  alsoAnswers: 302,
  headers: [
    {
      name: 'sec-fetch-site',
      description: 'set by browsers: whether the form is on a page of this origin',
    },
    { name: 'sec-fetch-mode', description: 'set by browsers: `navigate` for a form' },
  ],
  refusals: [401, 429],
  refusalShape: 'bare',
} as const

/** The steps of a log-in: primary authentication by each method, then second factors. */
export function logInStepOperations(steps: LogInStepHandlers): Operation[] {
  const methods = [
    ['password', 'Password', 'password'],
    ['username', 'Username', 'password'],
    ['cert', 'Cert', 'cert'],
    ['ext-jwt', 'ExtJwt', 'ext-jwt'],
  ] as const
  return [
    ...methods.flatMap(([method, name, credential]): Operation[] => [
      {
        ...logInStepDefaults,
        operationId: `oidcPageOf${name}`,
        summary: `Show the page of a log-in by ${method}`,
        method: 'GET',
        path: `/login/${method}`,
        handle: (call) => steps.page(call),
      },
      operationWithBody({
        ...logInStepDefaults,
        operationId: `oidcLogInBy${name}`,
        summary: `Log in by ${method}`,
        method: 'POST',
        path: `/login/${method}`,
        body: logInRequestBody,
        bodyBytesMax: OAUTH_FORM_BYTES_MAX,
        logInMethod: () => credential,
        handle: (call, body) => steps.logIn(call, body, credential),
      }),
    ]),
    operationWithBody({
      ...logInStepDefaults,
      operationId: 'oidcGiveCode',
      summary: 'Complete a log-in with a TOTP or recovery code',
      method: 'POST',
      path: '/login/totp',
      body: logInRequestBody,
      bodyBytesMax: OAUTH_FORM_BYTES_MAX,
      handle: (call, body) => steps.giveCode(call, body),
    }),
    {
      ...logInStepDefaults,
      operationId: 'oidcAuthQueries',
      summary: 'List the second factors that a log-in lacks',
      method: 'GET',
      path: '/login/auth-queries',
      handle: (call) => steps.queries(call),
    },
  ]
}

export class LogInStepHandlers {
  readonly #deps: LogInStepsDeps

  constructor(deps: LogInStepsDeps) {
    this.#deps = deps
  }

  async page(call: RequestContext): Promise<Reply> {
    const id = readFlowId(call, undefined)
    const redirectUri = await this.#deps.oidcFlow.redirectOf(id)
    if (redirectUri === null) throw new Problem('UNAUTHORIZED')
    return renderLogInPage({ id, asks: 'password', redirectUri, fault: '', status: 200 })
  }

  async logIn(
    call: RequestContext,
    body: LogInBody,
    by: 'password' | 'cert' | 'ext-jwt',
  ): Promise<Reply> {
    refuseCrossSiteForm(call)
    const id = readFlowId(call, body)
    const of = readFormParameters(body)
    const credential: LogInCredential =
      by === 'password'
        ? { by, username: of('username') ?? '', password: of('password') ?? '' }
        : { by }
    const client = {
      ...aboutIn(body),
      certificateRequest: encodeFlowCertificateRequest(of('csrPem')),
    }
    const step = await this.#deps.oidcFlow.logIn(id, credential, call.credentials, client, {
      write: toWriteRequest(call),
      turn: call,
    })
    return await this.#answer(call, id, step, 'password')
  }

  async giveCode(call: RequestContext, body: LogInBody): Promise<Reply> {
    refuseCrossSiteForm(call)
    const id = readFlowId(call, body)
    const { secondFactors } = this.#deps
    const principal = await this.principal(call, id)
    const code = readFormParameters(body)('code') ?? ''
    try {
      const origin = writeOriginForActor(toWriteRequest(call), actorForPrincipal(principal))
      const given = { purpose: 'pass', code, address: call.credentials.address } as const
      await secondFactors.prove(origin, principal.identity.id, given, requireEnrolled)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      const { id: identityId } = principal.identity
      if (error.code === 'SERVER_TOO_MANY_REQUESTS') {
        const failure = { fault: tooManyCodesMessage, status: problemTypes[error.code].http }
        call.refusalPage = await this.factorPage(call, id, identityId, failure)
      }
      if (error.code !== 'MFA_INVALID_TOKEN') throw error
      const wrong = { code: 'INVALID TOTP CODE', message: 'an invalid TOTP code was supplied' }
      const failure = { fault: 'That code is not right.', status: 400 }
      const page = await this.factorPage(call, id, identityId, failure)
      return page ?? jsonResponseWithoutEnvelope(wrong, 400)
    }
    return await this.goOn(call, id)
  }

  /**
   * Continues after a correct factor: redirects to `/authorize/callback`, requests the next missing
   * factor, or refuses the log-in.
   */
  async goOn(call: RequestContext, id: string): Promise<Reply> {
    return await this.#answer(
      call,
      id,
      await this.#deps.oidcFlow.afterFactor(id, call.credentials),
      'code',
    )
  }

  async queries(call: RequestContext): Promise<Reply> {
    const id = readFlowId(call, undefined)
    const { pendingFactors, identity } = await this.principal(call, id)
    const authQueries = pendingFactors.map((factor) => this.#queryOf(identity.id, factor))
    return jsonResponseWithoutEnvelope({ authQueries } as never)
  }

  /**
   * The caller that passed primary authentication in this flow.
   * @throws {Problem} UNAUTHORIZED if primary authentication is missing.
   */
  async principal(call: RequestContext, id: string): Promise<SessionPrincipal> {
    const principal = await this.#deps.oidcFlow.sessionOf(id, call.credentials)
    if (principal === null) throw new Problem('UNAUTHORIZED')
    return principal
  }

  /**
   * The page that requests a TOTP code, or lets the user enroll TOTP.
   * @returns null if the client shows no pages, or the flow id is unknown.
   */
  async factorPage(
    call: RequestContext,
    id: string,
    identityId: string,
    failure: Pick<LogInFlowPage, 'fault' | 'status'> = { fault: '', status: 200 },
  ): Promise<Reply | null> {
    const redirectUri = await this.redirectOfPage(call, id)
    if (redirectUri === null) return null
    const isEnrolled = this.#deps.secondFactors.find(identityId)?.isVerified === true
    return renderLogInPage({
      id,
      asks: isEnrolled ? 'code' : 'enrollment',
      redirectUri,
      ...failure,
    })
  }

  /** The redirect URI of the flow whose page is shown; null in the same cases as `factorPage`. */
  async redirectOfPage(call: RequestContext, id: string): Promise<string | null> {
    return wantsPage(call) ? await this.#deps.oidcFlow.redirectOf(id) : null
  }

  async #answer(
    call: RequestContext,
    id: string,
    step: LogInStepResult,
    asked: 'password' | 'code',
  ): Promise<Reply> {
    const redirectUri = await this.redirectOfPage(call, id)
    switch (step.kind) {
      case 'passed':
        return redirectResponse(
          addQueryParameters(`${step.issuer}/authorize/callback`, { id: step.progressId }),
        )
      case 'pending': {
        const page = await this.#pageOfPending(call, id, step, redirectUri)
        if (page !== null) return page
        const authQueries = step.factors.map((factor) => this.#queryOf(step.identityId, factor))
        const headers = {
          ...Object.fromEntries(
            step.factors.flatMap(({ kind }) => Object.entries(factorAsks[kind].headers)),
          ),
          ...(step.challenge === null
            ? {}
            : { 'www-authenticate': wwwAuthenticateValue(step.challenge, true) }),
          ...noReferrerHeaders,
        }
        return { ...jsonResponseWithoutEnvelope({ authQueries } as never), headers }
      }
      case 'refused': {
        const { code, challenge } = step.refusal
        call.challenge = challenge
        if (redirectUri !== null) {
          const { http: status } = problemTypes[code]
          call.refusalPage = renderLogInPage({
            id,
            asks: asked,
            redirectUri,
            fault: faults[asked],
            status,
          })
        }
        throw logInProblem(step.refusal)
      }
    }
  }

  /** @returns null if the client shows no pages, or no page exists for the missing factor. */
  async #pageOfPending(
    call: RequestContext,
    id: string,
    { factors, identityId }: Extract<LogInStepResult, { readonly kind: 'pending' }>,
    redirectUri: string | null,
  ): Promise<Reply | null> {
    if (factors.some(({ kind }) => factorAsks[kind].onPage)) {
      return await this.factorPage(call, id, identityId)
    }
    const lacked = factors.find((factor) => factor.kind === 'extJwt')
    if (lacked === undefined || redirectUri === null) return null
    const signer = this.#deps.state.get('externalJwtSigner', lacked.signerId)
    return renderExternalTokenPage(
      { id, redirectUri, fault: '', status: 200 },
      signer?.name ?? 'an identity provider',
    )
  }

  #queryOf(identityId: string, factor: PendingFactor): Record<string, unknown> {
    const query = toAuthQuery(this.#deps.state, identityId, factor)
    return { ...query, ...factorAsks[factor.kind].query }
  }
}

/** Data with which the log-in steps request one kind of second factor. */
interface FactorAsk {
  /**
   * True: the user submits the factor on `factorPage`. False: the client sends the factor in a
   * header of each request.
   */
  readonly onPage: boolean
  readonly headers: Readonly<Record<string, string>>
  /**
   * Members of the auth query (the description of the required factor) whose values differ from
   * those that the REST API returns.
   */
  readonly query: Readonly<Record<string, unknown>>
}

/** Requests by kind of factor; the compiler reports a kind without an entry. */
const factorAsks: Readonly<Record<PendingFactor['kind'], FactorAsk>> = {
  totp: {
    onPage: true,
    headers: { 'totp-required': 'true' },
    query: {
      typeId: 'TOTP',
      format: 'numeric',
      minLength: 6,
      maxLength: 8,
      httpUrl: './oidc/login/totp',
    },
  },
  extJwt: { onPage: false, headers: {}, query: {} },
}

/** Message on a page, during the pause after too many wrong codes. */
export const tooManyCodesMessage =
  'Too many wrong codes were given. Wait a minute, then enter the next.'

const faults = {
  password: 'The user name or password is not right.',
  code: 'The log-in took too long; begin again.',
} as const

function requireEnrolled(found: Mfa | undefined): asserts found is Mfa {
  if (found?.isVerified !== true) throw new Problem('MFA_INVALID_TOKEN')
}

/**
 * Refuses a form that a page of another origin submits, because that page could log the user in as
 * another identity. A script of another origin may send the request, because the browser then shows
 * no page, and only the script sees the response.
 */
export function refuseCrossSiteForm({ headers }: RequestContext): void {
  const isForm = headers['sec-fetch-mode'] === 'navigate'
  // @guard oidc/authorization--form
  if (!isForm || headers['sec-fetch-site'] === 'same-origin') return
  throw new Problem('UNAUTHORIZED', { detail: 'the form is not of the page of this log-in' })
}

function wantsPage({ accept }: RequestContext): boolean {
  return accept.includes('text/html')
}

/** The id of the log-in flow, from the query or the body of a step. */
export function readFlowId(call: RequestContext, body: unknown): string {
  const of = readRequestParameters(call, body)
  return of('id') ?? of('authRequestID') ?? ''
}

/** Field names of OpenZiti's forms, without the prefix; they are matched case-insensitively. */
const formNames: Readonly<Record<'env' | 'sdk', readonly string[]>> = {
  env: ['arch', 'os', 'osRelease', 'osVersion', 'domain', 'hostname'],
  sdk: ['appId', 'appVersion', 'branch', 'revision', 'type', 'version'],
}

function aboutIn(body: LogInBody): {
  readonly configTypes: readonly string[]
  readonly envInfo: Readonly<Record<string, unknown>> | null
  readonly sdkInfo: Readonly<Record<string, unknown>> | null
} {
  if (typeof body !== 'string') {
    const { configTypes, envInfo, sdkInfo } = body
    return { configTypes: configTypes ?? [], envInfo: envInfo ?? null, sdkInfo: sdkInfo ?? null }
  }
  const form = new URLSearchParams(body)
  const byName = new Map(Array.from(form, ([name, value]) => [name.toLowerCase(), value]))
  const infoOf = (prefix: 'env' | 'sdk'): Record<string, string> | null => {
    const found = formNames[prefix].flatMap((name) => {
      const value = byName.get(`${prefix}${name}`.toLowerCase())
      return value === undefined ? [] : [[name, value] as const]
    })
    return found.length === 0 ? null : Object.fromEntries(found)
  }
  return { configTypes: form.getAll('configTypes'), envInfo: infoOf('env'), sdkInfo: infoOf('sdk') }
}
