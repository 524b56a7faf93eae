import { findEntity } from '../../entities/registry.ts'
import type { KindName } from '../../entities/kind-records.ts'
import type { ProcessorShare } from '../../lib/bounds/processor-share.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import { refusalProblem } from '../../lib/refusal-problem.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import {
  type AccessDifference,
  type AccessRight,
  accessRights,
  type PairChanges,
  type PreviewedWrite,
} from '../../fsm/access/access-difference.ts'
import type { StateReader } from '../../fsm/state-reader.ts'
import type { StateView } from '../../ports/state-view.ts'
import { detailResponse, type Reply } from '../http/responses/envelope.ts'
import type { RequestContext } from '../http/request-context.ts'
import type { ApiLimits } from '../limits.ts'
import { type OperationBody, type Operation, operationWithBody } from '../http/operation.ts'
import type { WritePreparers } from '../preparers/write-preparers.ts'
import { requireCaller } from '../sessions/current-identity.ts'
import { integerSchema } from '../schemas/envelope.ts'
import { accessPreviewRequestSchema, accessPreviewResponseSchema } from './preview-schema.ts'
import {
  addChangePositionToError,
  PreviewedWriteBuilder,
  permissionsForPreview,
} from './previewed-writes.ts'
import type { RequestBodyValidator } from '../schemas/request-body-validator.ts'
import { CallerReadPermissions } from './caller-read-permissions.ts'

export interface PreviewOperationsDeps {
  readonly state: StateView & Pick<StateReader, 'previewAccess'>
  readonly preparers: WritePreparers
  readonly processor: ProcessorShare
  readonly limits: ApiLimits
  readonly validator: RequestBodyValidator
}

export const previewResponseLimits = {
  /**
   * Maximum rows in one page of a preview; a `limit` that is larger or below 1 is replaced by this
   * value.
   */
  previewRowsMax: 500,
  /**
   * Maximum service policies with changed posture checks that the response lists; the count in the
   * response includes all of them.
   */
  previewedPoliciesMax: 50,
} as const

const body = { schema: accessPreviewRequestSchema, isRequired: true } as const

/** Rights that connect an edge router with an identity or a service. */
const ofRouters: ReadonlySet<AccessRight> = new Set(['router', 'serviceRouter'])

/** Operations that show how changes would affect access, before the changes are made. */
export function previewOperations(deps: PreviewOperationsDeps): Operation[] {
  const writes = new PreviewedWriteBuilder(deps.validator)
  return [
    operationWithBody({
      operationId: 'previewAccess',
      summary: 'Preview which access some changes would give and take; nothing is written',
      tag: 'access',
      apis: ['management'],
      permission: 'identity.read',
      changesNothing: true,
      method: 'POST',
      path: '/access/preview',
      query: [
        { name: 'limit', schema: integerSchema, isRequired: false },
        { name: 'offset', schema: integerSchema, isRequired: false },
        { name: 'right', schema: { type: 'string', enum: accessRights }, isRequired: false },
        {
          name: 'change',
          schema: { type: 'string', enum: ['given', 'taken'] },
          isRequired: false,
        },
      ],
      body,
      success: 200,
      response: { kind: 'detail', schema: accessPreviewResponseSchema },
      refusals: [404, 409],
      handle: (call, asked) => preview(deps, writes, call, asked),
    }),
  ]
}

async function preview(
  deps: PreviewOperationsDeps,
  previewed: PreviewedWriteBuilder,
  call: RequestContext,
  { changes }: OperationBody<typeof body>,
): Promise<Reply> {
  const readable = new CallerReadPermissions(call)
  for (const permission of ['identity.read', 'service.read'] as const) readable.require(permission)
  for (const kind of new Set(changes.map((change) => change.kind))) {
    // @guard preview-tells-or-costs--kinds
    for (const permission of permissionsForPreview(kind)) readable.require(permission)
  }
  const { state, preparers } = deps
  const parts = { preparers, level: state.featureLevel }
  const { writes, ignoredFields } = await previewed.of(parts, call, changes)
  const difference = await computeAccessDifference(deps, call, writes)
  return detailResponse(buildPreviewResponse(state, call, difference, readable), ignoredFields)
}

/**
 * The effect that writes by the caller would have on records and access.
 * @throws {Problem} with the codes with which the writes would be refused; COULD_NOT_VALIDATE if
 * they would change too many records for a preview; REVISION_MOVED if records changed during every
 * attempt.
 */
export async function computeAccessDifference(
  { state, processor, limits }: PreviewOperationsDeps,
  call: RequestContext,
  writes: readonly PreviewedWrite[],
): Promise<AccessDifference> {
  const { identity, isAdmin } = requireCaller(call)
  const permissions = identity.permissions
  for (let attempt = 0; attempt < limits.judgementsMax; attempt += 1) {
    const found = await inTurns(processor, call, () => {
      const judged = state.previewAccess(writes, { isAdmin, permissions })
      if (judged.outcome === 'refused')
        throw addChangePositionToError(refusalProblem(judged.refusal), judged.at)
      if (judged.outcome === 'tooMany') {
        throw fieldProblem('changes', 'they would change too many records for a preview')
      }
      return judged.difference
    })
    if (found !== null) return found
  }
  throw new Problem('REVISION_MOVED')
}

/**
 * Starts the work when fair scheduling of processor time selects the caller, and lets other callers
 * work between its steps.
 */
function inTurns<T>(
  processor: ProcessorShare,
  call: RequestContext,
  begin: () => Generator<void, T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const { sharer } = call
  processor.run(sharer, () => {
    try {
      resolve(processor.finish(sharer, wanted(call, begin())))
    } catch (error) {
      reject(error as Error)
    }
  })
  return promise
}

/**
 * Runs the steps as long as the client waits.
 * @throws {Problem} TIMEOUT at the next step after the client has disconnected or received a
 * timeout.
 */
function* wanted<T>(call: RequestContext, steps: Generator<void, T>): Generator<void, T> {
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return step.value
    if (call.isGone) throw new Problem('TIMEOUT')
    yield
  }
}

export function buildPreviewResponse(
  state: StateView,
  call: RequestContext,
  difference: AccessDifference,
  readable: CallerReadPermissions,
): JsonObject {
  // @guard preview-tells-or-costs--routers
  const mayReadRouters = readable.has('router.read')
  const countsOf = (right: AccessRight): JsonObject =>
    Object.fromEntries(
      difference.pairs.flatMap((one) => (one.right === right ? [[one.change, one.count]] : [])),
    )
  const routerCounts = (right: AccessRight): JsonObject | null =>
    mayReadRouters ? countsOf(right) : null
  const ref = (kind: KindName, id: string): JsonObject => {
    const isNew = difference.isNew(kind, id)
    const name = difference.record(kind, id)?.['name'] ?? ''
    const known = isNew ? null : state.ref(kind, id)
    return { ...(known ?? { _links: {}, entity: findEntity(kind).collection, id }), name, isNew }
  }
  const checks = readable.only('service-policy.read', () => difference.checks) ?? []
  const refs = (ids: readonly string[]): readonly JsonObject[] =>
    readable.only('posture-check.read', () => ids.map((id) => ref('postureCheck', id))) ?? []
  return {
    counts: {
      dial: countsOf('dial'),
      bind: countsOf('bind'),
      router: routerCounts('router'),
      serviceRouter: routerCounts('serviceRouter'),
    },
    postureChangesCount: checks.length,
    postureChanges: checks
      .slice(0, previewResponseLimits.previewedPoliciesMax)
      .map(({ policyId, given, taken, written }) => ({
        policy: ref('servicePolicy', policyId),
        given: refs(given),
        taken: refs(taken),
        written: refs(written),
      })),
    ...rowsOf(call, difference.pairs, mayReadRouters, ref),
    withheld: readable.withheld(),
  }
}

/**
 * One page of the pairs of records that gain or lose a right, in the order of `pairs`. Contains
 * only pairs that match `right` and `change` in the query and that the caller may read.
 */
function rowsOf(
  call: RequestContext,
  pairs: readonly PairChanges[],
  mayReadRouters: boolean,
  ref: (kind: KindName, id: string) => JsonObject,
): JsonObject {
  const { previewRowsMax: max } = previewResponseLimits
  const wantedLimit = Number(call.first('limit') ?? 10)
  const limit = wantedLimit < 1 ? max : Math.min(wantedLimit, max)
  const offset = Math.max(0, Number(call.first('offset') ?? 0))
  const [right, change] = [call.first('right'), call.first('change')]
  const shown = pairs.filter(
    (one) =>
      (right === undefined || one.right === right) &&
      (change === undefined || one.change === change) &&
      (mayReadRouters || !ofRouters.has(one.right)),
  )
  const rows: JsonObject[] = []
  let skip = offset
  for (const one of shown) {
    const page = rows.length < limit ? one.page(skip, limit - rows.length) : []
    skip = Math.max(0, skip - one.count)
    for (const pair of page) rows.push(rowOf(one, pair, ref))
  }
  const totalCount = shown.reduce((sum, { count }) => sum + count, 0)
  return { rows, pagination: { limit, offset, totalCount } }
}

function rowOf(
  { right, change }: PairChanges,
  [left, other]: readonly [string, string],
  ref: (kind: KindName, id: string) => JsonObject,
): JsonObject {
  const isOfService = right === 'serviceRouter'
  const isOfRouter = ofRouters.has(right)
  return {
    right,
    change,
    identity: isOfService ? null : ref('identity', left),
    service: isOfService ? ref('service', left) : isOfRouter ? null : ref('service', other),
    router: isOfRouter ? ref('edgeRouter', other) : null,
  }
}
