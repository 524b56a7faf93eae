import { extractHexDigits } from '../../lib/text/hex-digits.ts'
import { fieldProblem } from '../../lib/problems.ts'
import type { PostureReport, PostureService } from '../../ports/posture.ts'
import type { RequestContext } from '../http/request-context.ts'
import type { Caller } from '../../auth/principal/principal.ts'
import { envelopeResponse } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import {
  postureResponseSchema,
  postureResponseBulkSchema,
  postureResponseCreateSchema,
} from './posture-schema.ts'
import { IGNORED_FIELDS_MAX, findIgnoredFields } from '../schemas/request-body-validator.ts'
import { requireCaller } from '../sessions/current-identity.ts'
import type { ApiLimits } from '../limits.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'

interface PostureResponseOperationsDeps {
  readonly posture: PostureService
  readonly limits: ApiLimits
}

/** Operations with which clients report the posture of their devices. */
export function postureResponseOperations(deps: PostureResponseOperationsDeps): Operation[] {
  const common = { tag: 'postureChecks', apis: ['client'], permission: 'session' } as const
  const refusals = [] as const
  const report = async (
    call: RequestContext,
    responses: readonly Response[],
    status: 200 | 201,
  ) => {
    const reports = responses.map((response, at) => reportOf(response, at, status === 201))
    const caller = requireCaller(call)
    await deps.posture.report(caller.session, reports)
    return envelopeResponse(
      status,
      { services: prompted(deps, caller, reports) },
      ignoredIn(responses),
    )
  }
  return [
    operationWithBody({
      ...common,
      operationId: 'createPostureResponse',
      summary: 'Submit one posture response',
      method: 'POST',
      path: '/posture-response',
      body: { schema: postureResponseCreateSchema, isRequired: true },
      success: 201,
      response: { kind: 'detail', schema: postureResponseSchema },
      refusals,
      handle: (call, response) => report(call, [response], 201),
    }),
    operationWithBody({
      ...common,
      operationId: 'createPostureResponseBulk',
      summary: 'Submit several posture responses, all or none',
      method: 'POST',
      path: '/posture-response-bulk',
      body: {
        schema: postureResponseBulkSchema(deps.limits.postureResponsesMax),
        isRequired: true,
      },
      success: 200,
      response: { kind: 'detail', schema: postureResponseSchema },
      refusals,
      handle: (call, responses) => report(call, responses, 200),
    }),
  ]
}

/** The services that will soon require a new TOTP code, because the device woke or was unlocked. */
function prompted(
  { posture }: PostureResponseOperationsDeps,
  { session }: Caller,
  reports: readonly PostureReport[],
): readonly object[] {
  const endpoints = reports.flatMap((report) => (report.kind === 'endpoint' ? [report] : []))
  const prompts = {
    isWoken: endpoints.some(({ isWoken }) => isWoken),
    isUnlocked: endpoints.some(({ isUnlocked }) => isUnlocked),
  }
  if (!prompts.isWoken && !prompts.isUnlocked) return []
  return posture
    .promptedServices(session, prompts)
    .map((service) => ({ ...service, postureQueryType: 'MFA' }))
}

function ignoredIn(responses: readonly Response[]): { ignoredFields: string[] } | null {
  const names = responses.flatMap((one) =>
    findIgnoredFields(postureResponseCreateSchema.schema, one),
  )
  if (names.length === 0) return null
  return { ignoredFields: [...new Set(names)].slice(0, IGNORED_FIELDS_MAX) }
}

type Response = SchemaValue<typeof postureResponseCreateSchema.schema>

/** @throws {Problem} COULD_NOT_VALIDATE. */
function reportOf(response: Response, at: number, isAlone: boolean): PostureReport {
  const { id: checkId } = response
  const required = <T>(name: keyof Response, value: T | null | undefined): T => {
    if (value !== null && value !== undefined) return value
    const field = isAlone ? name : `${at}.${name}`
    throw fieldProblem(field, `${field} is required`)
  }
  switch (response.typeId) {
    case 'OS': {
      const type = required('type', response.type)
      const version = required('version', response.version)
      return { kind: 'os', checkId, type, version, build: response.build ?? '' }
    }
    case 'DOMAIN':
      return { kind: 'domain', checkId, domain: required('domain', response.domain) }
    case 'MAC': {
      const addresses = required('macAddresses', response.macAddresses).map(extractHexDigits)
      return { kind: 'mac', checkId, addresses }
    }
    case 'PROCESS':
      return {
        kind: 'process',
        checkId,
        path: response.path ?? '',
        isRunning: response.isRunning ?? false,
        hash: extractHexDigits(response.hash ?? ''),
        signerFingerprints: (response.signerFingerprints ?? []).map(extractHexDigits),
      }
    default:
      return {
        kind: 'endpoint',
        isWoken: response.woken ?? false,
        isUnlocked: response.unlocked ?? false,
      }
  }
}
