import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, resolve } from 'node:path'

import { composeConfig } from '../../config/controller/compose.ts'
import { loadControllerConfig, parseControllerConfig } from '../../config/controller/load.ts'
import { formatConfigFault } from '../../config/engine/fault.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import {
  formatHostPort,
  type HostPort,
  isControllerId,
  parseHostPort,
} from '../../lib/text/names.ts'
import { type CommandFailure, usageFailure } from '../../controller/command-failure.ts'
import { decodeText } from '../../lib/text/decode-text.ts'
import { refuseForeignFolders } from '../terminal/folder-owner.ts'
import { shortHostNameWarning } from '../terminal/short-host-name.ts'

/** Flags of `cluster init` and `cluster join` from which a new configuration is composed. */
export interface ConfigFlags {
  readonly id?: string
  readonly data?: string
  readonly bindApi?: string
  readonly bindRouter?: string
  readonly bindCluster?: string
  /** Host, without a port. */
  readonly advertise?: string
}

export interface PlannedConfig {
  /** Absolute path of the configuration. */
  readonly path: string
  readonly folder: string
  readonly config: ControllerConfig
  readonly text: string
  /** False if the configuration was composed from flags and is not written to its file yet. */
  readonly isThere: boolean
  /** A warning about the configuration, to be printed once it is written; null if none. */
  readonly warning: string | null
}

const DEFAULT_BINDS = { api: '0.0.0.0:1280', router: '0.0.0.0:1380', cluster: '0.0.0.0:1480' }
const EVERY_HOST = new Set(['0.0.0.0', '::'])

/**
 * Loads the configuration at `path` if it exists; otherwise composes a configuration from flags.
 * Writes nothing.
 * @param trustDomain trust domain of a composed configuration; an existing file keeps its own.
 * @throws {CommandFailure} exit 2: a faulty file, a faulty flag, or a flag that contradicts the
 * file.
 */
export function planConfig(path: string, flags: ConfigFlags, trustDomain: string): PlannedConfig {
  const file = resolve(path)
  const folder = dirname(file)
  if (existsSync(file)) {
    const loaded = loadControllerConfig(file, process.env)
    if (!loaded.ok) throw faultsOf(loaded.faults)
    refuseContradictions(file, loaded.config, flags)
    const text = decodeText(readFileSync(file))
    return { path: file, folder, config: loaded.config, text, isThere: true, warning: null }
  }
  const { warning, ...settings } = settingsOf(flags)
  const text = composeConfig({ ...settings, trustDomain, seeds: [] })
  const parsed = parseControllerConfig(file, text, process.env)
  if (!parsed.ok) throw faultsOf(parsed.faults)
  return { path: file, folder, config: parsed.config, text, isThere: false, warning }
}

/** @throws {CommandFailure} when root would create files in folders that another user owns. */
export function refuseForeignPlannedFolders({ path, config }: PlannedConfig): void {
  refuseForeignFolders([path, config.data, config.identity.key])
}

function settingsOf(
  flags: ConfigFlags,
): Omit<Parameters<typeof composeConfig>[0], 'trustDomain' | 'seeds'> &
  Pick<PlannedConfig, 'warning'> {
  const api = bindOf('--bind-api', flags.bindApi ?? DEFAULT_BINDS.api)
  const router = bindOf('--bind-router', flags.bindRouter ?? DEFAULT_BINDS.router)
  const mesh = bindOf('--bind-cluster', flags.bindCluster ?? DEFAULT_BINDS.cluster)
  const id = flags.id ?? hostname().split('.')[0] ?? ''
  if (!isControllerId(id)) {
    throw usageFailure(
      `--id: ${JSON.stringify(id)} is not a controller id; use letters, digits, '.', '_', '-'`,
    )
  }
  const given = advertisedHost(flags)
  // A wildcard address is replaced with the name of this host, because a peer cannot dial a
  // wildcard.
  const isNamed = given === undefined && [mesh, api].some(({ host }) => EVERY_HOST.has(host))
  const hostName = isNamed ? hostname() : ''
  const hostOf = ({ host }: HostPort): string => given ?? (EVERY_HOST.has(host) ? hostName : host)
  return {
    id,
    data: flags.data ?? 'data',
    meshBind: formatHostPort(mesh),
    meshAdvertise: advertiseOf(hostOf(mesh), mesh.port),
    routersBind: formatHostPort(router),
    webBind: formatHostPort(api),
    webAdvertise: advertiseOf(hostOf(api), api.port),
    warning: isNamed ? shortHostNameWarning(hostName) : null,
  }
}

function advertiseOf(host: string, port: number): string {
  const address = formatHostPort({ host, port })
  if (parseHostPort(address) === null) {
    throw usageFailure(
      `--advertise: expected a host name or an IP address without a port, found ${JSON.stringify(host)}`,
    )
  }
  return address
}

/**
 * The advertised host without the brackets around an IPv6 address, which only an address with a
 * port needs.
 */
function advertisedHost({ advertise }: ConfigFlags): string | undefined {
  return advertise?.replace(/^\[([0-9a-f:.]+)\]$/i, '$1')
}

function bindOf(flag: string, text: string): HostPort {
  const address = parseHostPort(text)
  if (address === null)
    throw usageFailure(`${flag}: expected host:port, found ${JSON.stringify(text)}`)
  return address
}

/** Refuses a flag that differs from the file; otherwise the flag would be ignored silently. */
function refuseContradictions(path: string, config: ControllerConfig, flags: ConfigFlags): void {
  const [web] = config.web
  const pairs: readonly (readonly [string, string | undefined, string | null | undefined])[] = [
    ['--id', flags.id, config.id],
    ['--data', flags.data && resolve(dirname(path), flags.data), config.data],
    ['--bind-api', flags.bindApi, web?.bind],
    ['--bind-router', flags.bindRouter, config.routers.bind],
    ['--bind-cluster', flags.bindCluster, config.cluster.bind],
    ['--advertise', advertisedHost(flags), parseHostPort(config.cluster.advertise)?.host],
  ]
  for (const [flag, given, found] of pairs) {
    if (given === undefined || given === found) continue
    throw usageFailure(
      `${path} exists with ${found ?? 'nothing'}, but ${flag} is ${given}; omit the flag, or edit the file`,
    )
  }
}

function faultsOf(
  faults:
    | Parameters<typeof formatConfigFault>[0][]
    | readonly Parameters<typeof formatConfigFault>[0][],
): CommandFailure {
  return usageFailure(faults.map(formatConfigFault).join('\n'))
}
