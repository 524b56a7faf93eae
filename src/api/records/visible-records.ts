import type { CallerScope, Entity } from '../../entities/define-entity.ts'
import type { EntityOperation } from '../../entities/operations.ts'
import { assert } from '../../lib/assert.ts'
import type { ListSource, StateView } from '../../ports/state-view.ts'

/** Selects the records of a kind that the caller of an operation may see. */
export interface VisibleRecords {
  source(callerId: string): ListSource
  has(callerId: string, id: string): boolean
}

type Records = Pick<StateView, 'get' | 'permissions'>

/**
 * On the client API, selects the records that the descriptor's `callerScope` describes, even for
 * administrators. On other APIs, selects all records.
 * @throws {AssertionError} when the client API serves a kind without a suitable `callerScope`; the
 * controller then does not start. A default scope could show records of another kind or of other
 * callers.
 */
export function visibleRecords(
  state: Records,
  { entity, api, operationId }: Pick<EntityOperation, 'entity' | 'api' | 'operationId'>,
): VisibleRecords {
  if (api !== 'client') return all(entity)
  const { callerScope } = entity
  assert(callerScope !== null, `${operationId} of the client API has a scope in its descriptor`)
  return scoped(state, entity, callerScope)
}

function all({ name }: Entity): VisibleRecords {
  return { source: () => ({ of: 'kind', entity: name }), has: () => true }
}

function scoped(state: Records, entity: Entity, scope: CallerScope): VisibleRecords {
  const { name } = entity
  switch (scope.through) {
    case 'access':
      assert(
        name === 'service',
        `service policies let callers use services and nothing else, so no ${name}`,
      )
      return {
        source: (identityId) => ({ of: 'services', identityId }),
        // @guard objects-of-others--access
        has: (callerId, id) => state.permissions(callerId, id).length > 0,
      }
    case 'reference': {
      const { by } = scope
      const isFit = entity.fields[by]?.reference?.to === 'identity' && entity.scope === null
      assert(isFit, `each ${name} names an identity by ${by}, and every one of its table is one`)
      return {
        source: (value) => ({ of: 'naming', entity: name, field: by, value }),
        has: (callerId, id) => state.get(name, id)?.[by] === callerId,
      }
    }
  }
}
