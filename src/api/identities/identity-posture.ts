import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, MfaRemoveSchema } from '../../../proto/gen/command_pb.ts'
import { GO_ZERO_TIME, formatTime } from '../../lib/text/format-time.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { EndpointState, PostureService, StoredFactor } from '../../ports/posture.ts'
import { requestOrigin, type RequestContext } from '../http/request-context.ts'
import {
  detailResponse,
  emptyResponse,
  listResponse,
  type Reply,
  rfc3339Text,
} from '../http/responses/envelope.ts'
import type { Operation } from '../http/operation.ts'
import { failedServiceRequestSchema, postureDataSchema } from './posture-schema.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'

interface IdentityPostureOperationsDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly posture: PostureService
  readonly writer: ProposalWriter
}

/**
 * Maximum API sessions in the posture data of an identity; further ones in id order are omitted.
 */
const SESSIONS_SHOWN_MAX = 500

/**
 * Operations that show the posture data and the failed service requests of an identity, and that
 * remove its second factor.
 */
export function identityPostureOperations(deps: IdentityPostureOperationsDeps): Operation[] {
  const common = { tag: 'identities', apis: ['management'], success: 200 } as const
  const ofIdentity = (
    call: RequestContext,
    answer: () => Reply | Promise<Reply>,
  ): Reply | Promise<Reply> => {
    const id = call.param('id')
    return deps.reads.found(call, `identity with id ${id}`, () =>
      deps.state.get('identity', id) === undefined ? null : answer(),
    )
  }
  return [
    {
      ...common,
      operationId: 'getIdentityPostureData',
      summary: 'Show the posture data of an identity',
      permission: 'identity.read',
      method: 'GET',
      path: '/identities/{id}/posture-data',
      response: { kind: 'detail', schema: postureDataSchema },
      refusals: [404],
      handle: (call) =>
        ofIdentity(call, () => detailResponse(postureDataOf(deps, call.param('id')))),
    },
    {
      ...common,
      operationId: 'getIdentityFailedServiceRequests',
      summary: 'List recent service requests of an identity that failed posture checks',
      permission: 'identity.read',
      method: 'GET',
      path: '/identities/{id}/failed-service-requests',
      response: { kind: 'list', schema: failedServiceRequestSchema },
      refusals: [404],
      handle: (call) =>
        ofIdentity(call, () => {
          const rows = failedRequestsOf(deps, call.param('id'))
          const { length } = rows
          return listResponse(rows, { limit: length, offset: 0, totalCount: length }, [])
        }),
    },
    {
      ...common,
      operationId: 'removeIdentityMfa',
      summary: 'Remove MFA from an identity (idempotent)',
      permission: 'identity.update',
      method: 'DELETE',
      path: '/identities/{id}/mfa',
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404],
      handle: (call) =>
        ofIdentity(call, async () => {
          const identityId = call.param('id')
          const payload = toBinary(MfaRemoveSchema, create(MfaRemoveSchema, { identityId }))
          await deps.writer.write(requestOrigin(call), { kind: CommandKind.MFA_REMOVE, payload })
          await deps.posture.factorMoved(identityId)
          return emptyResponse()
        }),
    },
  ]
}

/**
 * The posture data of an identity. Parts that the client did not report are empty, except
 * `endpointState`, which is absent.
 */
function postureDataOf(deps: IdentityPostureOperationsDeps, identityId: string): JsonObject {
  const { state, posture } = deps
  const { os, domain, mac, processes } = posture.of(identityId)
  const sdkInfo = state.get('identity', identityId)?.sdkInfo ?? {}
  const sessions = state.findAll('apiSession', 'identityId', identityId)
  const endpoints = posture.endpointsOf(identityId)
  const ofSessions = sessions.slice(0, SESSIONS_SHOWN_MAX).map((session) => {
    const { id } = session
    const endpointState = shownEndpoint(endpoints.get(id))
    const mfa = { apiSessionId: id, ...shownFactor(posture.factorOf(session)) }
    return [id, { mfa, sdkInfo, ...endpointState }] as const
  })
  return {
    apiSessionPostureData: Object.fromEntries(ofSessions),
    domain: { ...reported(domain), domain: domain?.domain ?? '' },
    mac: { ...reported(mac), addresses: mac?.addresses ?? [] },
    os: {
      ...reported(os),
      type: os?.type ?? '',
      version: os?.version ?? '',
      build: os?.build ?? '',
    },
    processes: processes.map((process) => ({
      ...reported(process),
      binaryHash: process.hash,
      isRunning: process.isRunning,
      signerFingerprints: process.signerFingerprints,
    })),
  }
}

function reported(report: { readonly checkId: string; readonly atMs: number } | null): JsonObject {
  const lastUpdatedAt = report === null ? GO_ZERO_TIME : rfc3339Text(report.atMs)
  return { postureCheckId: report?.checkId ?? '', timedOut: false, lastUpdatedAt }
}

/**
 * Whether a TOTP code was submitted, and whether the code was submitted after the device last woke
 * or was unlocked.
 */
function shownFactor({ passedAtMs, wokenAtMs, unlockedAtMs }: StoredFactor): JsonObject {
  const isAfter = (atMs: number | null): boolean => passedAtMs !== null && passedAtMs >= (atMs ?? 0)
  return {
    passedAt: formatTime(passedAtMs),
    passedMfa: passedAtMs !== null,
    passedOnUnlock: isAfter(unlockedAtMs),
    passedOnWake: isAfter(wokenAtMs),
  }
}

function shownEndpoint(endpoint: EndpointState | undefined): JsonObject {
  if (endpoint === undefined) return {}
  const { wokenAtMs, unlockedAtMs } = endpoint
  return { endpointState: { unlockedAt: formatTime(unlockedAtMs), wokenAt: formatTime(wokenAtMs) } }
}

function failedRequestsOf(
  { posture }: IdentityPostureOperationsDeps,
  identityId: string,
): JsonObject[] {
  return posture.failedRequests(identityId).map(({ atMs, policyFailures, ...request }) => ({
    ...request,
    policyFailures: policyFailures as readonly JsonObject[],
    when: rfc3339Text(atMs),
  }))
}
