import { hash } from 'node:crypto'
import type { ConfigType } from '../../entities/kinds/config-type.ts'
import { canonicalJson } from '../../lib/text/canonical-json.ts'
import { seededConfigTypes } from './seed-config-types.ts'
import type { State } from '../records/state.ts'

/** Feature level that introduced the current schemas. */
const SCHEMAS_LEVEL = 2

/**
 * SHA-256 (hex) of the canonical JSON of the schemas in clusters created at feature level 1, by id
 * of the config type. With these schemas, OpenZiti's console could not save a config.
 */
const superseded: ReadonlyMap<string, string> = new Map([
  [
    'cea49285-6c07-42cf-9f52-09a9b115c783',
    'f0b005503bed1126d5d21ecc1b8f0ac187e8bc88e028339bfc0ca2d46759d2ec',
  ],
  ['g7cIWbcGg', 'b76b5d2b35c656a0a67a584c7e7a910dacda02db77c76217183fc9ae3ba5b850'],
  ['NH5p4FpGR', '0af3f3650a6c1533447a1783fb207ad7e5351ee810f2f072175fec630666d6ab'],
  ['host.v2', '6d5486bee2b8f5760bdd1b2f5fed95f981916e24302573405d361042ce639b5d'],
  ['proxy.v1', '460c152b63f4a7365423f55b3da48f957dfda1f543be46d8a8a9377b0c8f3aca'],
  ['router.link.v1', 'c835d6dbb92b31b68d958426590f77d51b3e3eeb4604a57bf19288517df5ca83'],
])

/**
 * The config type with the current schema, if it still has the schema from the version that created
 * the cluster; null if its schema is current, or was changed by a user.
 */
export function upgradeConfigTypeSchema(configType: ConfigType): ConfigType | null {
  const known = superseded.get(configType.id)
  if (known === undefined) return null
  if (hash('sha256', canonicalJson(configType.schema)) !== known) return null
  const seed = seededConfigTypes.find(({ id }) => id === configType.id)
  return seed === undefined ? null : { ...configType, schema: seed.schema }
}

/** Updates the schemas of existing config types when an entry raises the feature level. */
export function upgradeConfigTypes(
  state: State,
  from: number,
  { index, logTimeMs }: { readonly index: number; readonly logTimeMs: number },
): void {
  if (from >= SCHEMAS_LEVEL || state.featureLevel < SCHEMAS_LEVEL) return
  for (const id of superseded.keys()) {
    const record = state.get('configType', id)
    const carried = record === undefined ? null : upgradeConfigTypeSchema(record)
    if (carried === null) continue
    state.put('configType', { ...carried, updatedAt: logTimeMs, revision: index })
  }
}
