import { dirname, join } from 'node:path'

import { parseControllerConfig } from '../../config/controller/load.ts'
import { API_NAMES } from '../../config/controller/options.ts'
import { formatYaml } from '../../config/engine/yaml-tree.ts'
import { parseDuration } from '../../lib/text/duration.ts'
import { formatHostPort, parseHostPort } from '../../lib/text/names.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import type { MigrationReport } from '../report.ts'
import type { MigratedController } from './controllers.ts'
import type { OpenZitiConfiguration, WebListener } from './openziti-configuration.ts'
import { configurationFault } from './settings.ts'

const STORE = 'configuration'
const MINUTE_MS = 60_000
/** The mesh port is the port of the first HTTPS listener plus this number, as in a quickstart. */
const MESH_PORT_OFFSET = 200
const PORT_MAX = 65_535
const EVERY_HOST: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

/** A file for a migrated controller; its folder is named after the controller. */
export interface ControllerFile {
  readonly name: string
  readonly text: string
  readonly isSecret: boolean
}

/**
 * The configuration of a migrated controller, and the files to which it refers.
 * @throws {MigrationFault} CONFIGURATION.
 */
export function buildControllerFiles(
  controller: MigratedController,
  { trustDomain, caPem }: { readonly trustDomain: string; readonly caPem: string },
  report: MigrationReport,
): ControllerFile[] {
  const { certificatePem, privateKeyPem, serverCertificates, configuration } = controller
  const text = configurationText(controller, trustDomain, report)
  requireUsable(text, configuration.path)
  return [
    { name: 'config.yml', text, isSecret: false },
    { name: 'cert.pem', text: certificatePem, isSecret: false },
    { name: 'key.pem', text: privateKeyPem, isSecret: true },
    { name: 'ca.pem', text: caPem, isSecret: false },
    ...serverCertificates.flatMap((one, at) => [
      { name: `server-${at + 1}.pem`, text: one.certificatePem, isSecret: false },
      { name: `server-${at + 1}-key.pem`, text: one.privateKeyPem, isSecret: true },
    ]),
  ]
}

/**
 * Checks the new configuration during the migration; otherwise a fault would prevent the
 * controller's start during the maintenance window.
 */
function requireUsable(text: string, path: string): void {
  const parsed = parseControllerConfig(join(dirname(path), 'config.yml'), text, {})
  if (parsed.ok) return
  const [{ key, problem } = { key: '', problem: '' }] = parsed.faults
  throw configurationFault(
    `${path} has no counterpart that can start: ${key === '' ? '' : `${key} `}${problem}`,
  )
}

function configurationText(
  { id, configuration, serverCertificates }: MigratedController,
  trustDomain: string,
  report: MigrationReport,
): string {
  const { path, unused, web, routers } = configuration
  const [first] = web
  if (first === undefined) throw configurationFault(`${path}: web has no listener`)
  const text = formatYaml({
    id,
    data: 'data',
    trustDomain,
    identity: { cert: 'cert.pem', key: 'key.pem', ca: 'ca.pem' },
    cluster: clusterOf(first, configuration),
    ...(routers === null
      ? {}
      : { routers: { bind: bindOf(routers.bind, path), ...advertiseOf(routers) } }),
    web: web.map((listener) => listenerOf(listener, id, path, report)),
    ...(serverCertificates.length === 0
      ? {}
      : {
          serverCertificates: serverCertificates.map((_, at) => ({
            cert: `server-${at + 1}.pem`,
            key: `server-${at + 1}-key.pem`,
          })),
        }),
    ...timesOf(configuration),
  })
  const head = [
    `# Written by flotilla migrate from ${printableLine(path)}. Paths are relative to this file.`,
    '# flotilla controller check config.yml says whether the controller can start.',
  ]
  if (unused.length === 0) return `${[...head, text].join('\n')}`
  // Lists only the keys, because values may be secrets and every user of the host can read this
  // file.
  const rest = unused.map((key) => printableLine(`#   ${key}`))
  return [
    ...head,
    text.trimEnd(),
    '',
    '# Keys of the old file without a counterpart here:',
    ...rest,
    '',
  ].join('\n')
}

function clusterOf(first: WebListener, { routers, path }: OpenZitiConfiguration) {
  const bind = hostPortOf(first.bind, path)
  const port = bind.port + MESH_PORT_OFFSET
  if (port > PORT_MAX) {
    throw configurationFault(
      `${path}: the port of the mesh would be ${port}; move web to a port up to ${PORT_MAX - MESH_PORT_OFFSET}`,
    )
  }
  const { host } = hostPortOf(routers?.advertise ?? first.advertise, path)
  return {
    bind: formatHostPort({ host: bind.host, port }),
    advertise: formatHostPort({ host, port }),
  }
}

/**
 * The option `advertise` for routers. It is omitted if the advertised port is that of `bind`,
 * because its default is then the same address.
 */
function advertiseOf({ bind, advertise }: NonNullable<OpenZitiConfiguration['routers']>) {
  const isUsual = parseHostPort(bind)?.port === parseHostPort(advertise)?.port
  return isUsual ? {} : { advertise }
}

function listenerOf(
  { bind, advertise, apis }: WebListener,
  id: string,
  path: string,
  report: MigrationReport,
) {
  const names = new Set(apis.flatMap((api) => apiNames(api) ?? noteApi(api, id, report)))
  if (names.has('console') && !consoleApis.every((api) => names.has(api))) {
    const reason = `the console needs ${consoleApis.join(' and ')} at its address, so it is left out`
    report.note('changed', { store: STORE, id, field: 'web.apis' }, reason)
    names.delete('console')
  }
  const served = [...names]
  return {
    bind: bindOf(bind, path),
    advertise: formatHostPort(hostPortOf(advertise, path)),
    apis: served.length === 0 ? ['health-checks'] : served,
  }
}

/** APIs that the console needs on the listener that serves it. */
const consoleApis = ['edge-management', 'fabric'] as const

/** Flotilla's names of the APIs for one OpenZiti API; null if the API is unknown. */
function apiNames(api: string): readonly string[] | null {
  if (api === 'edge-oidc') return []
  if (api === 'zac') return ['console']
  return API_NAMES.some((name) => name === api) ? [api] : null
}

function noteApi(api: string, id: string, report: MigrationReport): readonly string[] {
  const reason = `the API ${JSON.stringify(api)} has no counterpart`
  report.note('changed', { store: STORE, id, field: 'web.apis' }, reason)
  return []
}

function timesOf(configuration: OpenZitiConfiguration): object {
  const { sessionTimeout, identityEnrollment, routerEnrollment } = configuration
  const timeout = millisecondsOf(sessionTimeout)
  const [identity, router] = [millisecondsOf(identityEnrollment), millisecondsOf(routerEnrollment)]
  const minutes = (ms: number): number => Math.max(5, Math.round(ms / MINUTE_MS))
  return {
    ...(timeout === null ? {} : { api: { sessionTimeoutMs: Math.max(MINUTE_MS, timeout) } }),
    ...(identity === null && router === null
      ? {}
      : {
          enrollment: {
            ...(identity === null ? {} : { identityMinutes: minutes(identity) }),
            ...(router === null ? {} : { routerMinutes: minutes(router) }),
          },
        }),
  }
}

function millisecondsOf(text: string | null): number | null {
  return text === null ? null : parseDuration(text)
}

/** Converts the address of a listener to Flotilla's notation. */
function bindOf(text: string, path: string): string {
  const { host, port } = hostPortOf(text, path)
  return formatHostPort({ host: EVERY_HOST.has(host) ? '0.0.0.0' : host, port })
}

function hostPortOf(text: string, path: string) {
  const found = parseHostPort(text.startsWith(':') ? `0.0.0.0${text}` : text)
  if (found !== null) return found
  throw configurationFault(`${path}: ${JSON.stringify(text)} is no address (host:port)`)
}
