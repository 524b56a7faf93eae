import type { RecordOf } from '../../entities/kind-records.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { StateView } from '../../ports/state-view.ts'

/** Maximum routers in a response that lists routers for a service. */
const routersShownMax = 25

const shared = [
  'name',
  'hostname',
  'isOnline',
  'syncStatus',
  'cost',
  'noTraversal',
  'disabled',
  'supportedProtocols',
  'appData',
  'capabilities',
  'version',
] as const

/**
 * An edge router as clients see it. `more` names further fields to copy from the router's detail,
 * if the detail has them.
 */
export function routerView(detail: JsonObject, more: readonly string[] = []): JsonObject {
  const names = [...shared, ...more].filter((name) => detail[name] !== undefined)
  return Object.fromEntries(names.map((name) => [name, detail[name] ?? null]))
}

/**
 * Details of at most `routersShownMax` of the routers: the connected ones first, otherwise in the
 * order of the list.
 */
export function sortConnectedRoutersFirst(
  state: StateView,
  routers: readonly RecordOf<'edgeRouter'>[],
  callerId: string,
): JsonObject[] {
  const details = routers.map((router) => state.detail('edgeRouter', router, callerId))
  const isOnline = (detail: JsonObject): number => (detail['isOnline'] === true ? 0 : 1)
  return details.sort((a, b) => isOnline(a) - isOnline(b)).slice(0, routersShownMax)
}
