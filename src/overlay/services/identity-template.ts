import type { ModelIdentity } from '../../../proto/gen/router_pb.ts'
import { parseJsonOrNull } from '../../lib/text/json-value.ts'

const PLACEHOLDER =
  /\$(?:tunneler_id\.(?:name|(?:appData|tag)\[([^\]]*)\])|((?:src|dst)_(?:protocol|hostname|ip|port)))/g

/**
 * Fills a template of a config, such as `$tunneler_id.name:$src_port`. Missing values are empty.
 * @param values values of one connection, such as `dst_ip`; empty without a connection.
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
