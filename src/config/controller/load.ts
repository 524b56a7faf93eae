import type { Environment } from '../engine/environment.ts'
import { type ConfigTable, loadConfig, type LoadedConfig, parseConfig } from '../engine/load.ts'
import { type ControllerConfig, controllerOptions } from './options.ts'
import { withRaftProfile } from './raft-profiles.ts'
import { checkOptionRelations } from './option-relations.ts'

/**
 * Options of a controller. Environment variables override them: FLOTILLA_RAFT_TICK_MS overrides
 * `raft.tickMs`.
 */
export const controllerConfigTable: ConfigTable<ControllerConfig> = {
  fields: controllerOptions,
  overridePrefix: 'FLOTILLA_',
  unknownKeys: 'faults',
  settle: (read, reader) => {
    // If there are faults, the profile and the rules between options are skipped, because they need
    // valid values.
    if (reader.faults.length > 0) return read
    const config = withRaftProfile(read, reader)
    checkOptionRelations(config, (key, problem) => reader.fault(key, problem))
    return config
  },
}

type Loaded = LoadedConfig<ControllerConfig>

export function loadControllerConfig(path: string, environment: Environment): Loaded {
  return loadConfig(controllerConfigTable, path, environment)
}

/** Parses configuration text; relative paths are relative to the folder of `file`. */
export function parseControllerConfig(
  file: string,
  text: string,
  environment: Environment,
): Loaded {
  return parseConfig(controllerConfigTable, file, text, environment)
}
