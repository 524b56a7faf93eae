import { createHash } from 'node:crypto'

import { canonicalJson } from '../../lib/text/canonical-json.ts'
import type { SchemaFields } from '../engine/schema.ts'
import { type ControllerConfig, controllerOptions } from './options.ts'

type SharedValue = string | number | boolean

interface SharedOption {
  /** Key of the option, such as `oidc.enabled`. */
  readonly name: string
  readonly value: SharedValue
  readonly isDefault: boolean
}

/** Names and values of all options with scope `cluster`. */
export function clusterScopeOptions(config: ControllerConfig): ReadonlyMap<string, SharedValue> {
  return new Map(collected(controllerOptions, config).map(({ name, value }) => [name, value]))
}

/**
 * SHA-256 over {@link clusterScopeOptions}, without later options that have their defaults. Peers
 * compare this hash when they connect.
 */
export function clusterScopeOptionsSha256(config: ControllerConfig): Uint8Array {
  const counted = collected(controllerOptions, config).filter((one) => !isLaterDefault(one))
  const text = canonicalJson(Object.fromEntries(counted.map(({ name, value }) => [name, value])))
  return Uint8Array.from(createHash('sha256').update(text).digest())
}

/**
 * Whether the option was introduced after release 0.1.0 and has its default value. Such options are
 * omitted, so that upgraded and older members have the same hash during a rolling upgrade.
 */
function isLaterDefault({ name, isDefault }: SharedOption): boolean {
  return isDefault && (name.startsWith('oidc.') || name === 'raft.profile')
}

/**
 * The options with scope `cluster`. Skips lists, because they describe the listeners of one
 * controller.
 */
function collected(fields: SchemaFields, values: object, prefix = ''): readonly SharedOption[] {
  return Object.entries(fields).flatMap(([key, node]) => {
    const value = (values as Record<string, unknown>)[key]
    const name = `${prefix}${key}`
    if (node.kind === 'option' && node.scope === 'cluster') {
      return [{ name, value: value as SharedValue, isDefault: value === node.default }]
    }
    const isSection = node.kind === 'section' && typeof value === 'object' && value !== null
    return isSection ? collected(node.fields, value, `${name}.`) : []
  })
}
