import { formatYaml } from '../engine/yaml-tree.ts'
import { ROUTER_CONFIG_VERSION } from './table.ts'

/**
 * Composes a configuration in which every other key has its default. The identity files are in the
 * configuration's folder.
 */
export function composeRouterConfig(options: {
  /** Base name of the router's identity files. */
  readonly name: string
  /** `tls:host:port` of controllers. */
  readonly endpoints: readonly string[]
  /** The only name that the router requests for its server certificate. */
  readonly ip: string
  /** Further sections, in the structure of the configuration file. */
  readonly sections?: Readonly<Record<string, unknown>>
}): string {
  const { name, endpoints, ip, sections = {} } = options
  const values = {
    v: ROUTER_CONFIG_VERSION,
    identity: {
      cert: `${name}.cert`,
      server_cert: `${name}.server.cert`,
      key: `${name}.key`,
      ca: `${name}.ca`,
    },
    ctrl: { endpoints: [...endpoints] },
    csr: { sans: { ip: [ip] } },
    ...sections,
  }
  const comment = `# Router ${name}. Relative paths start at the folder of this file; 'flotilla router options' lists every key.`
  return `${comment}\n${formatYaml(values)}`
}
