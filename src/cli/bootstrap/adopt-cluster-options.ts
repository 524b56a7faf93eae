import { setConfigOptions } from '../../config/controller/compose.ts'
import { clusterScopeOptions } from '../../config/controller/cluster-scope-options.ts'
import { parseControllerConfig } from '../../config/controller/load.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { environmentName } from '../../config/engine/environment.ts'
import { formatConfigFault } from '../../config/engine/fault.ts'
import type { SharedOption } from '../../ports/membership.ts'
import type { CheckList } from '../terminal/check-list.ts'
import type { PlannedConfig } from './config-from-flags.ts'

const PROFILE = 'raft.profile'

/**
 * Sets all options that must be equal on every controller to the values that the cluster uses.
 * Prints each option that changes.
 * @param offered the cluster's values; null when the member that responded runs a release that does
 * not send them.
 */
export function adoptClusterOptions(
  planned: PlannedConfig,
  offered: readonly SharedOption[] | null,
  checks: CheckList,
): PlannedConfig {
  if (offered === null) {
    const sentence = `the cluster runs a release that does not send its options; compare those of scope cluster in ${planned.path} with another controller`
    checks.warn('options', sentence)
    return planned
  }
  const own = clusterScopeOptions(planned.config)
  const values = new Map(offered.map(({ name, value }) => [name, JSON.parse(value) as unknown]))
  const settled = clusterScopeOptions(withProfile(planned, values.get(PROFILE)))
  const changed = [...own].filter(
    ([name, value]) =>
      values.has(name) && values.get(name) !== (name === PROFILE ? value : settled.get(name)),
  )
  if (changed.length === 0) {
    checks.ok('options', 'equal to those of the cluster')
    return planned
  }
  const taken = Object.fromEntries(changed.map(([name]) => [name, values.get(name)]))
  const text = setConfigOptions(planned.text, taken)
  const config = judgedConfig(planned, text, taken, checks)
  const each = changed.map(([name, value]) => `${name} ${String(taken[name])} (was ${value})`)
  checks.ok('options', `set as in the cluster: ${each.join(', ')}`)
  return { ...planned, text, config }
}

/**
 * The configuration with the Raft timing profile of the cluster, which determines the defaults of
 * other options. Returns the configuration unchanged if it would not be valid with this profile.
 */
function withProfile(planned: PlannedConfig, profile: unknown): ControllerConfig {
  if (profile === undefined || profile === planned.config.raft.profile) return planned.config
  const text = setConfigOptions(planned.text, { [PROFILE]: profile })
  const parsed = parseControllerConfig(planned.path, text, process.env)
  return parsed.ok ? parsed.config : planned.config
}

function judgedConfig(
  { path }: PlannedConfig,
  text: string,
  taken: Readonly<Record<string, unknown>>,
  checks: CheckList,
): ControllerConfig {
  const parsed = parseControllerConfig(path, text, process.env)
  if (!parsed.ok) {
    const faults = parsed.faults.map(formatConfigFault).join('; ')
    return checks.fail(
      'options',
      `the options of the cluster do not fit ${path}: ${faults}; correct the file, or install the version that the cluster runs, and rerun the join`,
    )
  }
  const now = clusterScopeOptions(parsed.config)
  const kept = Object.keys(taken).filter((name) => now.get(name) !== taken[name])
  if (kept.length > 0) {
    const variables = kept.map((name) => environmentName('FLOTILLA_', name)).join(', ')
    checks.fail(
      'options',
      `the environment sets ${variables}, and the cluster runs with other values; unset it, and rerun the join`,
    )
  }
  return parsed.config
}
