import type { Entity } from '../../entities/define-entity.ts'
import { referenceIndexKey, findReferencingFields } from '../../entities/referencing-fields.ts'
import type { StateView } from '../../ports/state-view.ts'

export const detachedReferenceLimits = {
  /** Maximum ids that a response lists per field; the response also contains the total number. */
  idsMax: 20,
} as const

/** Records of one kind that reference another record by one field. */
export interface DetachedReferences {
  readonly holder: Entity
  readonly field: string
  readonly ids: readonly string[]
  readonly totalCount: number
}

/**
 * Collects, before a deletion, records that lose a reference to the record to be deleted; at most
 * `idsMax` for each field. Another consequence of the deletion may still delete some of them.
 */
export function collectReferencesBeforeDelete(
  state: Pick<StateView, 'listNaming'>,
  entity: Entity,
  id: string,
): readonly DetachedReferences[] {
  const query = { limit: detachedReferenceLimits.idsMax }
  return findReferencingFields(entity).flatMap((referrer) => {
    if (referrer.onDelete !== 'strip') return []
    const { entity: holder, name: field } = referrer
    const found = state.listNaming(holder.name, field, referenceIndexKey(referrer, id), query)
    const ids = found.records.map((record) => record.id)
    return ids.length === 0 ? [] : [{ holder, field, ids, totalCount: found.totalCount }]
  })
}

/**
 * Of the collected records, those that still exist after the deletion: the items of the response's
 * field `detachedFrom`.
 */
export function detachedReferencesAfterDelete(
  state: Pick<StateView, 'get'>,
  detachments: readonly DetachedReferences[],
): Readonly<Record<string, unknown>>[] {
  return detachments.flatMap(({ holder, field, ids, totalCount }) => {
    const stayed = ids.filter((id) => state.get(holder.name, id) !== undefined)
    if (stayed.length === 0) return []
    const gone = ids.length - stayed.length
    return [{ entity: holder.plural, field, ids: stayed, totalCount: totalCount - gone }]
  })
}
