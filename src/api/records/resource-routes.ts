import type { Entity } from '../../entities/define-entity.ts'
import {
  type EntityOperation as EntityOperation,
  entityOperations,
} from '../../entities/operations.ts'
import { entities } from '../../entities/registry.ts'
import { assert } from '../../lib/assert.ts'
import { type Operation, type ResponseShape, operationWithBody } from '../http/operation.ts'
import { isPermission } from '../../auth/principal/permissions.ts'
import { declareQueryParameters } from '../http/query-parameters.ts'
import { ResourceHandlers } from './resource-handlers.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { PostureService } from '../../ports/posture.ts'
import type { ApiLimits } from '../limits.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'
import type { ListResponseSerializer } from '../http/responses/list-response-serializer.ts'
import type { WritePreparers } from '../preparers/write-preparers.ts'

interface ResourceOperationsDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly posture: PostureService
  readonly limits: ApiLimits
  readonly writer: ProposalWriter
  readonly lists: ListResponseSerializer
  readonly preparers: WritePreparers
}

/**
 * Operations for all entity descriptors.
 * @throws {AssertionError} for an inconsistent descriptor.
 */
export function resourceOperations(
  deps: ResourceOperationsDeps,
  kinds: readonly Entity[] = entities,
): Operation[] {
  const handlers = new ResourceHandlers(deps)
  return kinds.flatMap((entity) =>
    entityOperations(entity).map((operation) => operationFrom(operation, handlers)),
  )
}

function operationFrom(from: EntityOperation, handlers: ResourceHandlers): Operation {
  const { permission, request, operationId, entity, shape } = from
  assert(isPermission(permission), `${operationId} declares a permission`)
  const response: ResponseShape = {
    kind: shape === 'list' || shape === 'subList' ? 'list' : 'detail',
    schema: from.response,
  }
  const about = {
    operationId,
    summary: summaryOf(from),
    tag: entity.plural,
    apis: [from.api],
    method: from.method,
    path: from.path,
    permission,
    query: declareQueryParameters(from.query),
    success: from.success,
    response,
    refusals: from.refusals,
    hasEtag: taggedShapes.has(shape),
    isCompressible: response.kind === 'list',
  }
  switch (shape) {
    case 'list':
    case 'detail':
    case 'subList':
      return { ...about, handle: handlers.reading(from, shape) }
    case 'delete':
      return { ...about, handle: handlers.deleting(entity) }
    case 'create':
    case 'replace':
    case 'patch': {
      assert(request !== null, `${operationId} has the schema of its body`)
      const handle = handlers.writing(entity, shape)
      return operationWithBody({ ...about, body: { schema: request, isRequired: true }, handle })
    }
  }
}

const taggedShapes: ReadonlySet<EntityOperation['shape']> = new Set([
  'detail',
  'replace',
  'patch',
  'delete',
])

function summaryOf({ shape, entity, list }: EntityOperation): string {
  switch (shape) {
    case 'list':
      return `Lists ${words(entity.plural)}`
    case 'create':
      return `Create one of the ${words(entity.plural)}`
    case 'detail':
      return `Show one of the ${words(entity.plural)}`
    case 'replace':
      return `Update one of the ${words(entity.plural)} (all fields)`
    case 'patch':
      return `Update fields of one of the ${words(entity.plural)}`
    case 'delete':
      return `Delete one of the ${words(entity.plural)}`
    case 'subList':
      return `List the ${words(list?.of.plural ?? '')} of one of the ${words(entity.plural)}`
  }
}

/** Converts a plural name to words: `servicePolicies` → `service policies`. */
function words(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}
