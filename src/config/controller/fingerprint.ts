import { createHash } from 'node:crypto'

import { canonicalJson } from '../../lib/text/canonical-json.ts'
import type { Fields } from '../engine/schema.ts'
import { type ControllerConfig, controllerOptions } from './options.ts'

/**
 * SHA-256 over names and values of all options with scope `cluster`. Peers compare it when they
 * connect.
 */
export function sharedOptionsSha256(config: ControllerConfig): Uint8Array {
  const shared: Record<string, unknown> = {}
  collect(controllerOptions, config, '', shared)
  return Uint8Array.from(createHash('sha256').update(canonicalJson(shared)).digest())
}

/**
 * Options that release 0.1.0 does not have. They count only if they differ from their defaults, so
 * that upgraded and older members have the same fingerprint during a rolling upgrade.
 */
const LATER_OPTIONS = 'oidc.'

/** Lists are skipped: they describe listeners of one controller and share nothing. */
function collect(
  fields: Fields,
  values: object,
  prefix: string,
  into: Record<string, unknown>,
): void {
  for (const [key, node] of Object.entries(fields)) {
    const value = (values as Record<string, unknown>)[key]
    const name = `${prefix}${key}`
    if (node.kind === 'option' && node.scope === 'cluster') {
      const isAsBefore = name.startsWith(LATER_OPTIONS) && value === node.default
      if (!isAsBefore) into[name] = value
    }
    if (node.kind === 'section' && typeof value === 'object' && value !== null) {
      collect(node.fields, value, `${name}.`, into)
    }
  }
}
