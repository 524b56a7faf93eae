import type { Environment } from '../engine/environment.ts'
import { type ConfigTable, loadConfig, type LoadedConfig, parseConfig } from '../engine/load.ts'
import { type ControllerConfig, controllerOptions } from './options.ts'
import { withRaftProfile } from './raft-profiles.ts'
import { checkRelations } from './relations.ts'

/** FLOTILLA_RAFT_TICK_MS overrides `raft.tickMs`. */
export const controllerTable: ConfigTable<ControllerConfig> = {
  fields: controllerOptions,
  overridePrefix: 'FLOTILLA_',
  unknownKeys: 'faults',
  settle: (read, reader) => {
    // Profiles and rules depend on values, so they need a configuration without faulty ones.
    if (reader.faults.length > 0) return read
    const config = withRaftProfile(read, reader)
    checkRelations(config, (key, problem) => reader.fault(key, problem))
    return config
  },
}

type Loaded = LoadedConfig<ControllerConfig>

export function loadControllerConfig(path: string, environment: Environment): Loaded {
  return loadConfig(controllerTable, path, environment)
}

/** Parses text; relative paths start at the folder of `file`. */
export function parseControllerConfig(
  file: string,
  text: string,
  environment: Environment,
): Loaded {
  return parseConfig(controllerTable, file, text, environment)
}
