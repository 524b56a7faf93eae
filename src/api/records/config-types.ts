import { configTypeIds } from '../../fsm/config-type-ids.ts'
import { type ShownConfigTypes, noConfigTypes, type StateView } from '../../ports/state-view.ts'
import { fieldProblem } from '../../lib/problems.ts'
import type { RequestContext } from '../http/request-context.ts'
import type { Caller } from '../../auth/principal/principal.ts'
import type { ApiLimits } from '../limits.ts'

/** The config types that the client requested when it logged in: ids, or `all`. */
export function requestedConfigTypes({ session }: Caller): ShownConfigTypes {
  const { configTypes: ids } = session
  if (ids.length === 0) return noConfigTypes
  return ids.includes('all') ? 'all' : new Set(ids)
}

/**
 * Config types whose data a list shows: the types in the query parameter `configTypes` (repeated,
 * or separated by commas; ids or names) or, without this parameter, the types that the client
 * requested at log-in. Unknown types are ignored.
 * @throws {Problem} COULD_NOT_VALIDATE for too many types.
 */
export function configTypesForList(
  call: RequestContext,
  caller: Caller,
  state: StateView,
  limits: Pick<ApiLimits, 'configTypesMax'>,
): ShownConfigTypes {
  const asked = call.all('configTypes').flatMap((value) => value.split(','))
  const names = asked.map((name) => name.trim()).filter((name) => name !== '')
  if (names.length === 0) return requestedConfigTypes(caller)
  if (names.length > limits.configTypesMax) {
    const reason = `configTypes in query should have at most ${limits.configTypesMax} values`
    throw fieldProblem('configTypes', reason)
  }
  if (names.includes('all')) return 'all'
  return new Set(configTypeIds(state, names))
}
