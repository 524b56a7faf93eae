import type { SubList } from './define-entity.ts'
import type { KindName } from './kind-names.ts'

type SubListInput = Pick<SubList, 'of' | 'through' | 'unknownParent'> & {
  readonly by?: string
  readonly operationId?: string
}

/**
 * A sub-list whose parent must exist. {@link SubList} explains `by`, which is omitted if `through`
 * is `access`.
 */
export function subListOfExisting(
  of: KindName,
  through: SubList['through'],
  by?: string,
  operationId?: string,
): SubListInput {
  return {
    of,
    through,
    ...(by === undefined ? {} : { by }),
    ...(operationId === undefined ? {} : { operationId }),
    unknownParent: 'notFound',
  }
}
