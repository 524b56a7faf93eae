import { visibleText } from '../../app/visible-text.ts'
import { texts } from '../../texts.ts'
import { isObject } from '../records/json-values.ts'
import { pathRouters } from './circuit-path.ts'

/**
 * Names a session or circuit by its identity, service and routers, such as `laptop-04 to git over
 * router1`; null if the name of the identity is not known.
 */
export function liveRowName(
  row: Readonly<Record<string, unknown>>,
  names: ReadonlyMap<string, string>,
): string | null {
  const { identity, service } = row
  const id = String(row['identityId'] ?? row['clientId'] ?? '')
  const who = names.get(id) ?? (isObject(identity) ? identity['name'] : undefined)
  if (typeof who !== 'string' || who === '') return null
  const what = isObject(service) ? String(service['name'] ?? '') : ''
  const routers = pathRouters(row['path']).map(({ id: router, name }) => name || router)
  return visibleText(texts.live.rowName(who, what, routers))
}
