import { isMap, isScalar, parseDocument } from 'yaml'

import { formatYaml } from '../engine/yaml-tree.ts'
import { DEFAULT_WEB_API_NAMES } from './options.ts'

/** Values that a composed configuration sets; addresses are `host:port`. */
interface ComposedConfig {
  readonly id: string
  /**
   * Path of the data folder, as written into the configuration file; a relative path is relative to
   * that file's folder.
   */
  readonly data: string
  readonly trustDomain: string
  readonly meshBind: string
  readonly meshAdvertise: string
  readonly routersBind: string
  readonly webBind: string
  readonly webAdvertise: string
  /**
   * Mesh addresses of members, for a controller that joins; empty for a cluster's first controller.
   */
  readonly seeds: readonly string[]
}

/**
 * Composes a configuration in which every other option has its default. Certificate and key are in
 * the configuration's folder.
 */
export function composeConfig(composed: ComposedConfig): string {
  const { seeds, meshBind, meshAdvertise } = composed
  const values = {
    id: composed.id,
    data: composed.data,
    trustDomain: composed.trustDomain,
    identity: { cert: 'cert.pem', key: 'controller.key', ca: 'ca.pem' },
    cluster: {
      bind: meshBind,
      advertise: meshAdvertise,
      ...(seeds.length === 0 ? {} : { seeds: [...seeds] }),
    },
    routers: { bind: composed.routersBind },
    web: [
      {
        bind: composed.webBind,
        advertise: composed.webAdvertise,
        apis: [...DEFAULT_WEB_API_NAMES],
      },
    ],
  }
  const comment = `# Controller ${composed.id}. Relative paths start at the folder of this file; 'flotilla controller options' lists every key.`
  return `${comment}\n${formatYaml(values)}`
}

/**
 * Sets options and keeps the order and all other keys. Comments are kept, except within replaced
 * lists and empty sections.
 * @param text a configuration that loads without faults.
 * @param values by key, such as `cluster.seeds`.
 */
export function setConfigOptions(text: string, values: Readonly<Record<string, unknown>>): string {
  const document = parseDocument(text)
  if (!isMap(document.contents)) throw new TypeError('a configuration is a map of sections')
  for (const [key, value] of Object.entries(values)) {
    // Turns sections without a value, such as `oidc:`, into maps, because the parser refuses to set
    // a key in an empty section.
    const sections = key.split('.').slice(0, -1)
    for (const at of sections.map((_, depth) => sections.slice(0, depth + 1))) {
      if (!isMap(document.getIn(at))) document.setIn(at, document.createNode({}))
    }
    const present = document.getIn(key.split('.'), true)
    // Changes only the value, so that a comment on the same line is kept.
    if (isScalar(present) && typeof value !== 'object') present.value = value
    else document.setIn(key.split('.'), document.createNode(value))
  }
  return document.toString({ lineWidth: 0 })
}
