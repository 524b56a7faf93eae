import { yamlText } from '../engine/yaml-tree.ts'
import { CONFIG_VERSION } from './table.ts'

/**
 * The text of a configuration in which everything else keeps its default; identity files stand
 * beside it.
 */
export function composeRouterConfig(options: {
  /** Name of the files, and for a person. */
  readonly name: string
  /** `tls:host:port` of controllers. */
  readonly endpoints: readonly string[]
  /** The one SAN of its server certificate. */
  readonly ip: string
  /** Sections beside these, as the file has them. */
  readonly sections?: Readonly<Record<string, unknown>>
}): string {
  const { name, endpoints, ip, sections = {} } = options
  const values = {
    v: CONFIG_VERSION,
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
  return `${comment}\n${yamlText(values)}`
}
