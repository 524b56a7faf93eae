import { retryWhenRecordsChange } from '../../lib/retry-when-records-change.ts'
import { CommandKind } from '../../../proto/gen/command_pb.ts'
import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import { createdSchema } from '../../entities/schema.ts'
import type { KindName, RecordOf } from '../../entities/kind-records.ts'
import { Problem } from '../../lib/problems.ts'
import { requestOrigin, type RequestContext, toWriteRequest } from '../http/request-context.ts'
import { newEnrollmentToken, issueNetworkJwt } from '../preparers/enrollment-tokens.ts'
import {
  createdResponse,
  emptyResponse,
  listResponse,
  type Reply,
} from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { enrollmentBatchStep, type NewEnrollment, parseTimeMs } from '../preparers/enrollment.ts'
import { routerEnrollmentBatchStep } from '../preparers/router.ts'
import { enrollmentExpirySchema } from '../identities/identities-schema.ts'
import { networkJwtResponseSchema as networkJwtSchema } from '../schemas/about.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import { issuingCaId } from '../../auth/certificates/issuing-ca-id.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { ApiLimits } from '../limits.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import type { ApiVersionsKey } from '../api-deps.ts'
import type { Clock } from '../../lib/clock.ts'

interface EnrollmentsDeps {
  readonly cluster: ClusterView
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly jwt: JwtSigner
  readonly clock: Clock
  readonly limits: ApiLimits
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
  readonly writer: ProposalWriter
}

const created = { name: 'createResult', schema: createdSchema }

/** Operations on enrollments, in addition to creating, reading and deleting them. */
export function enrollmentOperations(deps: EnrollmentsDeps): Operation[] {
  const enrollments = new Enrollments(deps)
  return [
    operationWithBody({
      operationId: 'refreshEnrollment',
      summary: 'Refresh an enrollment: new token and expiry',
      tag: 'enrollments',
      apis: ['management'],
      permission: 'enrollment.update',
      method: 'POST',
      path: '/enrollments/{id}/refresh',
      body: { schema: enrollmentExpirySchema('enrollmentRefresh'), isRequired: true },
      success: 200,
      response: { kind: 'detail', schema: created },
      refusals: [404],
      handle: (call, { expiresAt }) => enrollments.refresh(call, parseTimeMs(expiresAt)),
    }),
    operationWithBody({
      operationId: 'reEnrollAuthenticator',
      summary: 'Re-enroll an authenticator',
      tag: 'authenticators',
      apis: ['management'],
      permission: 'authenticator.update',
      method: 'POST',
      path: '/authenticators/{id}/re-enroll',
      body: { schema: enrollmentExpirySchema('reEnroll'), isRequired: true },
      success: 201,
      response: { kind: 'detail', schema: created },
      refusals: [404, 409],
      handle: (call, { expiresAt }) => enrollments.ofAuthenticator(call, parseTimeMs(expiresAt)),
    }),
    {
      operationId: 'reEnrollEdgeRouter',
      summary: 'Re-enroll an edge router',
      tag: 'edgeRouters',
      apis: ['management'],
      permission: 'router.update',
      method: 'POST',
      path: '/edge-routers/{id}/re-enroll',
      success: 200,
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404],
      handle: (call) => enrollments.ofEdgeRouter(call),
    },
    {
      operationId: 'listNetworkJWTs',
      summary: 'Get the network token for clients',
      tag: 'networkJwts',
      apis: ['client', 'management'],
      permission: 'public',
      method: 'GET',
      path: '/network-jwts',
      success: 200,
      response: { kind: 'list', schema: networkJwtSchema },
      refusals: [429],
      handle: async () => {
        const rows = [{ name: 'default', token: await issueNetworkJwt(deps) }]
        return listResponse(rows, { limit: rows.length, offset: 0, totalCount: rows.length }, [])
      },
    },
  ]
}

class Enrollments {
  readonly #deps: EnrollmentsDeps

  constructor(deps: EnrollmentsDeps) {
    this.#deps = deps
  }

  async refresh(call: RequestContext, expiresAtMs: number): Promise<Reply> {
    const id = call.param('id')
    const known = await this.#known('enrollment', id)
    const made = await newEnrollmentToken(this.#deps, {
      method: known.method,
      subjectId: known.identityId || known.edgeRouterId || known.transitRouterId,
      expiresAtMs,
    })
    const { writer } = this.#deps
    await writer.entity(requestOrigin(call), CommandKind.ENTITY_PATCH, 'enrollment', id, made)
    return { ...createdResponse('enrollments', id, []), status: 200 }
  }

  /**
   * Replaces an authenticator by an enrollment, in one log entry: if the state machine refuses the
   * enrollment, the authenticator stays.
   */
  ofAuthenticator(call: RequestContext, expiresAtMs: number): Promise<Reply> {
    const { limits } = this.#deps
    return retryWhenRecordsChange(toWriteRequest(call), limits, async () => {
      const authenticatorId = call.param('id')
      const known = await this.#known('authenticator', authenticatorId)
      const create = await enrollmentBatchStep(this.#deps, {
        ...this.#inPlaceOf(known),
        of: 'identityId',
        subjectId: known.identityId,
        expiresAtMs,
      })
      const remove = {
        kind: CommandKind.ENTITY_DELETE,
        entity: 'authenticator',
        id: authenticatorId,
      } as const
      const { revision } = known
      const judgedOn = [{ entity: 'authenticator', id: authenticatorId, revision } as const]
      const id = await this.#deps.writer.batch(requestOrigin(call), [remove, create], 1, judgedOn)
      return createdResponse('enrollments', id, [])
    })
  }

  #inPlaceOf(known: Authenticator): Pick<NewEnrollment, 'method' | 'caId' | 'username'> {
    if (known.method === 'updb') return { method: 'updb', username: known.username ?? '' }
    const caId = issuingCaId(this.#deps.state, known)
    return caId === null ? { method: 'ott' } : { method: 'ottca', caId }
  }

  /**
   * Withdraws the certificate of a router and creates an enrollment for it, in one log entry. The
   * state machine then removes the router's previous enrollment.
   */
  async ofEdgeRouter(call: RequestContext): Promise<Reply> {
    const id = call.param('id')
    const withdraw = {
      kind: CommandKind.ENTITY_PATCH,
      entity: 'edgeRouter',
      id,
      fields: { isVerified: false, fingerprint: null, certPem: null },
    } as const
    const create = await routerEnrollmentBatchStep(this.#deps, 'edgeRouterId', id)
    await this.#deps.writer.batch(requestOrigin(call), [withdraw, create])
    return emptyResponse()
  }

  async #known<K extends KindName>(kind: K, id: string): Promise<RecordOf<K>> {
    const found = await this.#deps.reads.latest(() => this.#deps.state.get(kind, id))
    if (found !== undefined) return found
    throw new Problem('NOT_FOUND', { detail: `${kind} with id ${id} not found` })
  }
}
