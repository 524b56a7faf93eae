import type { StateView } from '../ports/state-view.ts'

/**
 * Ids of the config types that are given by id or name, without duplicates. The result omits
 * unknown types.
 */
export function configTypeIds(
  state: Pick<StateView, 'get' | 'find'>,
  names: readonly string[],
): string[] {
  const ids = names.flatMap((name) => {
    const found = state.get('configType', name) ?? state.find('configType', 'name', name)
    return found === undefined ? [] : [found.id]
  })
  return [...new Set(ids)]
}
