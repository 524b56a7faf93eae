import type { Environment } from '../engine/environment.ts'
import { type ConfigTable, loadConfig, type LoadedConfig, parseConfig } from '../engine/load.ts'
import type { EffectiveValue } from '../engine/reader.ts'
import { checkRouterRelations, withEndpointsFile } from './router-relations.ts'
import { controllerKeyLocations, type RouterConfig, routerFields } from './table.ts'

/**
 * Keys of a router. Environment variables do not override keys; `$NAME` and `${NAME}` within values
 * are replaced.
 */
export const routerConfigTable: ConfigTable<RouterConfig> = {
  fields: routerFields,
  overridePrefix: null,
  unknownKeys: 'warnings',
  settle: checkRouterRelations,
}

export type LoadedRouterConfig = LoadedConfig<RouterConfig>

export function loadRouterConfig(path: string, environment: Environment): LoadedRouterConfig {
  return withPlaces(loadConfig(routerConfigTable, path, environment))
}

/** Parses configuration text; relative paths are relative to the folder of `file`. */
export function parseRouterConfig(
  file: string,
  text: string,
  environment: Environment,
): LoadedRouterConfig {
  return withPlaces(parseConfig(routerConfigTable, file, text, environment))
}

function withPlaces(loaded: LoadedRouterConfig): LoadedRouterConfig {
  if (!loaded.ok) return loaded
  const config = withEndpointsFile(loaded.config, loaded.path)
  const effective = loaded.effective.filter(isShown).map((one) => withFolder(one, config))
  return { ...loaded, config, effective }
}

/**
 * Whether to show a key in the effective configuration. The alternative location of a key is shown
 * only if the file uses it.
 */
function isShown({ key, source }: EffectiveValue): boolean {
  const [ctrl, options, name] = key.split('.')
  const isSecondPlace =
    ctrl === 'ctrl' && options === 'options' && controllerKeyLocations.some((one) => one === name)
  return source.kind !== 'default' || !isSecondPlace
}

function withFolder(one: EffectiveValue, config: RouterConfig): EffectiveValue {
  const isDefaultFile = one.key === 'ctrl.endpointsFile' && one.source.kind === 'default'
  return isDefaultFile ? { ...one, value: config.ctrl.endpointsFile } : one
}
