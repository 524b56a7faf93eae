import { flowControlOptions } from '../../config/router/shared-options.ts'
import type { ConfigValues } from '../../config/engine/schema.ts'

/** Options of a configured dialer or listener that its circuit endpoints use. */
export type XgressOptions = Omit<
  ConfigValues<typeof flowControlOptions>,
  'getCircuitTimeout' | 'connectTimeout' | 'txPortalDupAckScale'
>

/** Options from the configuration; missing ones have their defaults. */
export function xgressOptions(given: Readonly<Record<string, unknown>> = {}): XgressOptions {
  const entries = Object.entries(flowControlOptions).map(([name, option]) => {
    const value = given[name]
    return [name, typeof value === typeof option.default ? value : option.default]
  })
  return Object.fromEntries(entries) as XgressOptions
}
