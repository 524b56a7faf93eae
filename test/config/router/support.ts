import { expect } from 'vitest'

import { formatConfigFault } from '../../../src/config/engine/fault.ts'
import type { Environment } from '../../../src/config/engine/environment.ts'
import { type LoadedRouterConfig, parseRouterConfig } from '../../../src/config/router/load.ts'
import { type RouterConfig, routerFields } from '../../../src/config/router/table.ts'
import type { FuzzSubject } from '../engine/fuzz.ts'

export const FILE = '/etc/flotilla/router.yml'

/** The smallest configuration with which a router starts and may listen, with four lines. */
export const LEAST = `v: 3
identity: {cert: r.cert, server_cert: r.server.cert, key: r.key}
ctrl: {endpoint: "tls:ctrl1.test:6262"}
csr: {sans: {dns: [r.test]}}
`

export function parse(text: string, environment: Environment = {}): LoadedRouterConfig {
  return parseRouterConfig(FILE, text, environment)
}

/** Loads LEAST with additional lines. */
export function config(more = '', environment: Environment = {}): RouterConfig {
  return whole(LEAST + more, environment)
}

export function whole(text: string, environment: Environment = {}): RouterConfig {
  const loaded = parse(text, environment)
  if (!loaded.ok) throw new Error(loaded.faults.map(formatConfigFault).join('\n'))
  return loaded.config
}

/**
 * Faults of LEAST with additional lines, as text without the name of the file: `5: forwarder.x: …`.
 */
export function faults(more: string, environment: Environment = {}): string[] {
  return faultsOf(LEAST + more, environment)
}

export function faultsOf(text: string, environment: Environment = {}): string[] {
  const loaded = parse(text, environment)
  return loaded.ok
    ? []
    : loaded.faults.map((fault) => formatConfigFault(fault).replace(`${FILE}:`, ''))
}

export function warnings(more: string, environment: Environment = {}): string[] {
  const loaded = parse(LEAST + more, environment)
  return loaded.warnings.map((warning) => formatConfigFault(warning).replace(`${FILE}:`, ''))
}

/** Expects exactly one fault, which is on the fifth line and begins with this text. */
export function expectFault(more: string, beginning: string): void {
  const found = faults(more)
  expect(found).toHaveLength(1)
  expect(found[0]?.startsWith(`5: ${beginning}`), found[0]).toBe(true)
}

/** The value at a path such as `forwarder.idleTxInterval`. */
export function at(from: RouterConfig, path: string): unknown {
  let found: unknown = from
  for (const name of path.split('.')) {
    found = (found as Readonly<Record<string, unknown>> | null)?.[name]
  }
  return found
}

export const routerSubject: FuzzSubject<RouterConfig> = {
  fields: routerFields,
  needed: ['v', 'identity', 'ctrl', 'cert', 'key', 'endpoint', 'binding', 'bind'],
  variables: ['HOME', 'A'],
  parse,
  check({ v, identity }) {
    if (v !== 3 || (identity.cert.path === null) === (identity.cert.pem === null)) {
      throw new Error('accepted without what is required')
    }
  },
}
