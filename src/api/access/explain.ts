import type { Service } from '../../entities/kinds/service.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import type { StateReader } from '../../fsm/state-reader.ts'
import type { ListQuery, ListSource, StateView } from '../../ports/state-view.ts'
import type { PostureService } from '../../ports/posture.ts'
import type { Clock } from '../../lib/clock.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { Reply } from '../http/responses/envelope.ts'
import {
  type ListResponseSerializer,
  createRowSerializer,
} from '../http/responses/list-response-serializer.ts'
import { listQueryParameters, readListQuery } from '../http/query-parameters.ts'
import type { RequestContext } from '../http/request-context.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { Operation } from '../http/operation.ts'
import { accessExplanationSchema } from './explain-schema.ts'
import { ReadableExplanations } from './readable-explanations.ts'
import { CallerReadPermissions } from './caller-read-permissions.ts'

interface ExplainOperationsDeps {
  readonly state: StateView & Pick<StateReader, 'explainAccess'>
  readonly reads: LinearizableReads
  readonly posture: PostureService
  readonly clock: Clock
  readonly lists: ListResponseSerializer
}

export const explanationRequestLimits = {
  /**
   * Maximum identity-service pairs in one page; explaining a pair costs about as much as listing
   * ten rows.
   */
  explainedPairsMax: 100,
} as const

const text = { type: 'string' } as const

/**
 * Operations that show which identities can reach a service, and why. The operations use the same
 * code that enforces access.
 */
export function accessExplanationOperations(deps: ExplainOperationsDeps): Operation[] {
  return [
    {
      operationId: 'explainAccess',
      summary:
        'Explain what an identity can dial and bind: every policy, router, posture check and terminator, or what is missing',
      tag: 'access',
      apis: ['management'],
      permission: 'service.read',
      method: 'GET',
      path: '/access/explain',
      query: [
        { name: 'identity', schema: text, isRequired: false },
        { name: 'service', schema: text, isRequired: false },
        { name: 'granted', schema: { type: 'string', enum: ['true', 'false'] }, isRequired: false },
        ...listQueryParameters,
      ],
      success: 200,
      response: { kind: 'list', schema: accessExplanationSchema },
      isCompressible: true,
      refusals: [404],
      handle: (call) => explain(deps, call),
    },
  ]
}

function explain(deps: ExplainOperationsDeps, call: RequestContext): Reply | Promise<Reply> {
  const asked = { identity: call.first('identity'), service: call.first('service') }
  const given = (['identity', 'service'] as const).filter((kind) => asked[kind] !== undefined)
  if (given.length === 0) {
    throw fieldProblem('identity', 'identity or service in query is required')
  }
  const readable = new CallerReadPermissions(call)
  readable.require('service.read')
  // @guard explanation-tells-records--sides
  readable.require('identity.read')
  const what = given.map((kind) => `${kind} ${(asked[kind] ?? '').slice(0, 128)}`).join(' or ')
  const { state } = deps
  return deps.reads.found(call, what, () => {
    const found = {
      identity: recordOf(
        asked.identity,
        (word) => state.get('identity', word) ?? state.find('identity', 'name', word),
      ),
      service: recordOf(
        asked.service,
        (word) => state.get('service', word) ?? state.find('service', 'name', word),
      ),
    }
    return given.some((kind) => found[kind] === null) ? null : answered(deps, call, found, readable)
  })
}

/** Finds a record by id or, if no record has that id, by name; null if neither exists. */
function recordOf<R>(word: string | undefined, find: (word: string) => R | undefined): R | null {
  return word === undefined ? null : (find(word) ?? null)
}

interface Sides {
  readonly identity: Identity | null
  readonly service: Service | null
}

function answered(
  { state, posture, clock, lists }: ExplainOperationsDeps,
  call: RequestContext,
  { identity, service }: Sides,
  readable: CallerReadPermissions,
): Reply | Promise<Reply> {
  const view = new ReadableExplanations({ state, posture, nowMs: clock.nowMs() }, readable)
  if (identity !== null && service !== null) {
    return lists.answer(call, {
      records: [service],
      serialize: createRowSerializer(() => view.of(identity, service)),
      pagination: { limit: 1, offset: 0, totalCount: 1 },
      filterableFields: [],
    })
  }
  const listed = identity === null ? 'identity' : 'service'
  const source = sourceOf(identity, service, call.first('granted') === 'true')
  const listing = state.listing(source, pageOf(call))
  if (listing === null) throw new Problem('NOT_FOUND')
  return lists.found(call, listing, ({ records, ...pagination }) => {
    // A limit in the filter overrides the page size.
    // @guard explanation-tells-records--many
    if (records.length > explanationRequestLimits.explainedPairsMax) throw tooMany()
    return {
      records,
      serialize: createRowSerializer((record: EntityRecord) =>
        view.of(identity ?? (record as Identity), service ?? (record as Service)),
      ),
      pagination,
      filterableFields: state.filterableFields(listed),
    }
  })
}

function tooMany(): Problem {
  return fieldProblem(
    'limit',
    `at most ${explanationRequestLimits.explainedPairsMax} pairs are explained at once`,
  )
}

/**
 * The records to combine with the given identity or service: all records of the other kind, or only
 * those for which a policy grants the identity access to the service.
 */
function sourceOf(
  identity: Identity | null,
  service: Service | null,
  isGranted: boolean,
): ListSource {
  if (!isGranted) return { of: 'kind', entity: identity === null ? 'identity' : 'service' }
  if (identity !== null) return { of: 'services', identityId: identity.id }
  return { of: 'subList', entity: 'service', id: service?.id ?? '', key: 'identities' }
}

function pageOf(call: RequestContext): ListQuery {
  const query = readListQuery(call)
  const { explainedPairsMax: max } = explanationRequestLimits
  const limit = query.limit === undefined ? 10 : query.limit
  return { ...query, limit: limit < 1 ? max : Math.min(limit, max) }
}
