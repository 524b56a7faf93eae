import type { ModelIdentity } from '../../../proto/gen/router_pb.ts'
import { parseJsonOrNull } from '../../lib/text/json-value.ts'

const PLACEHOLDER =
  /\$(?:tunneler_id\.(?:name|(?:appData|tag)\[([^\]]*)\])|((?:src|dst)_(?:protocol|hostname|ip|port)))/g

/**
 * Replaces the variables in a template of a config, such as `$tunneler_id.name:$src_port`. Missing
 * values become empty.
 * @param values values of a connection, such as `dst_ip`; empty if there is no connection.
 */
export function fillIdentityTemplate(
  template: string,
  identity: Pick<ModelIdentity, 'name' | 'appDataJson'>,
  values: Readonly<Record<string, string>> = {},
): string {
  return template.replaceAll(PLACEHOLDER, (_all, key?: string, ofConnection?: string) => {
    if (ofConnection !== undefined) return values[ofConnection] ?? ''
    if (key === undefined) return identity.name
    const data = parseJsonOrNull(Buffer.from(identity.appDataJson).toString('utf8'))
    if (typeof data !== 'object' || data === null || !Object.hasOwn(data, key)) return ''
    const value = (data as Readonly<Record<string, unknown>>)[key]
    return typeof value === 'object' ? JSON.stringify(value) : String(value)
  })
}
