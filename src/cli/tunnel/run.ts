import { flushCompileCache } from 'node:module'
import { BlockList, isIP, isIPv4 } from 'node:net'

import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/command-failure.ts'
import { programVersion, programVersionLine } from '../../controller/version.ts'
import { systemClock } from '../../lib/clock.ts'
import { CachedResolver } from '../../lib/runtime/cached-resolver.ts'
import { TargetSocketLimiter } from '../../overlay/sockets/target-socket-limiter.ts'
import { ProgramFailure } from '../../overlay/failure.ts'
import {
  type ConfiguredServicePort,
  parseConfiguredService,
} from '../../overlay/services/proxy-port-manager.ts'
import { limitHeapGrowth } from '../../threads/collect-buffers.ts'
import { type HostPort, parseHostPort } from '../../lib/text/names.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import type { MonitoringServer } from '../../overlay/monitoring/monitoring-server.ts'
import { IdentityTunnel } from '../../tunnel/identity-tunnel.ts'
import { tunnelLimits } from '../../tunnel/limits.ts'
import { startMetricsServer } from '../../tunnel/metrics-server.ts'
import { tunnelMetrics } from '../../tunnel/tunnel-metrics.ts'
import {
  createProgramLog,
  exitUnlessStopped,
  waitForStopSignal,
  toggleDebugLogOnSignal,
  systemRandom,
} from '../terminal/foreground-program.ts'
import { ServiceManager } from '../terminal/service-manager.ts'
import { CertificateApiClient } from '../client/certificate-api-client.ts'
import { IdentityCertificateFile } from './identity-certificate-file.ts'
import { readIdentityFile } from './identity-file.ts'

export interface RunTunnelOptions {
  readonly identity: readonly string[]
  readonly mode?: 'host' | 'proxy' | 'tproxy'
  readonly proxy?: readonly string[]
  readonly bind: string
  readonly resolver: string
  readonly dnsUpstream?: readonly string[]
  readonly dnsRange: string
  readonly metrics?: string
  readonly extend?: boolean
  readonly logLevel: string
}

/** Options of a router's `tunnel` listener that this command sets itself. */
const fixedOptions = {
  getCircuitTimeout: 30_000,
  udpIdleTimeout: 0,
  dnsUpstreamMode: 'parallel',
  dnsUnanswerable: 'refused',
  lanIf: null,
} as const

/**
 * Runs tunnels for enrolled identities until SIGTERM or SIGINT.
 * @throws {CommandFailure} exit 2 for invalid options or files, 1 when it cannot start.
 */
export async function runTunnel(options: RunTunnelOptions): Promise<void> {
  const { configured, mode, metricsAt } = checkedOptions(options)
  const identities = options.identity.map((path) => ({ path, ...readIdentityFile(path) }))
  const log = createProgramLog(options.logLevel)
  toggleDebugLogOnSignal(log, options.logLevel)
  const { env, pid } = process
  const serviceManager = new ServiceManager({ env, pid, log })
  const stopped = waitForStopSignal(log, 'tunnel')
  const sockets = new TargetSocketLimiter()
  const tunnels = identities.map((identity) => {
    const names = new CachedResolver({ path: `${identity.path}.addresses`, clock: systemClock })
    const tunnel = new IdentityTunnel({
      options: {
        ...fixedOptions,
        mode,
        resolver: [options.resolver],
        dnsSvcIpRange: options.dnsRange,
        dnsUpstream: options.dnsUpstream ?? null,
      },
      configured,
      anyAddress: options.bind,
      certificate: new IdentityCertificateFile(identity.path, identity),
      renewsAtStart: options.extend === true,
      names,
      api: new CertificateApiClient({ ...identity, names }),
      origin: identity.origin,
      sockets,
      version: programVersionLine(),
      clock: systemClock,
      random: systemRandom,
      log: identities.length === 1 ? log : log.child({ file: identity.path }),
    })
    return { identity, tunnel }
  })
  const metrics = await startMetrics(metricsAt, { mode, tunnels, log })
  log.info({ mode, version: programVersion(), pid }, 'tunnel running')
  // Reports `ready` here: the tunnel waits until a controller responds, and the start of the
  // systemd unit must not wait for that.
  serviceManager.ready(`runs in mode ${mode}`)
  // Writes the compile cache here, because the V8 flags that change next are part of the key of the
  // cache.
  flushCompileCache()
  limitHeapGrowth()
  try {
    await Promise.race([
      stopped,
      startAll(
        tunnels.map(({ tunnel }) => tunnel),
        stopped,
      ),
    ])
  } catch (error) {
    if (!(error instanceof ProgramFailure)) throw error
    throw new CommandFailure(EXIT_FAILED, error.message, error)
  } finally {
    serviceManager.stopping()
    const all = Promise.all([metrics?.stop(), ...tunnels.map(({ tunnel }) => tunnel.stop())])
    await exitUnlessStopped(
      tunnelLimits.stopMsMax,
      all.then(() => undefined),
    )
  }
  log.info({}, 'tunnel stopped')
}

interface MetricsDeps {
  readonly mode: string
  readonly tunnels: readonly {
    readonly identity: { readonly path: string }
    readonly tunnel: IdentityTunnel
  }[]
  readonly log: ProgramLogger
}

/** @throws {CommandFailure} exit 1 when the address cannot be opened. */
async function startMetrics(
  bind: HostPort | null,
  { mode, tunnels, log }: MetricsDeps,
): Promise<MonitoringServer | null> {
  if (bind === null) return null
  const metrics = () =>
    tunnelMetrics(
      { mode, version: programVersion() },
      tunnels.map(({ identity, tunnel }) => ({ file: identity.path, figures: tunnel.figures })),
    )
  try {
    return await startMetricsServer(bind, { metrics, log })
  } catch (error) {
    if (!(error instanceof ProgramFailure)) throw error
    throw new CommandFailure(EXIT_FAILED, error.message, error)
  }
}

/**
 * Starts all tunnels, and resolves when the program must stop. Rejects if one of the tunnels cannot
 * continue.
 */
async function startAll(tunnels: readonly IdentityTunnel[], stopped: Promise<void>): Promise<void> {
  await Promise.all(tunnels.map((tunnel) => tunnel.start()))
  await stopped
}

function checkedOptions({ identity, mode, proxy = [], bind, metrics }: RunTunnelOptions): {
  readonly configured: readonly ConfiguredServicePort[]
  readonly mode: string
  readonly metricsAt: HostPort | null
} {
  const fail = (reason: string): CommandFailure => new CommandFailure(EXIT_USAGE, reason)
  if (identity.length > tunnelLimits.identitiesMax) {
    throw fail(`--identity: one process serves at most ${tunnelLimits.identitiesMax} identities`)
  }
  if (new Set(identity).size < identity.length) throw fail('--identity: a file is given twice')
  if (proxy.length > 0 && mode !== undefined && mode !== 'proxy') {
    throw fail(`--proxy is for mode proxy; leave out --mode ${mode}`)
  }
  if (mode === 'tproxy' && identity.length > 1) {
    throw fail(
      '--mode tproxy serves one identity, as names and addresses of this host have one owner',
    )
  }
  const configured = proxy.map((text) => {
    const found = parseConfiguredService(text)
    if (found !== null) return found
    throw fail(`--proxy: expected SERVICE:PORT or SERVICE:PORT:udp, found ${JSON.stringify(text)}`)
  })
  if (!isIPv4(bind)) {
    throw fail(`--bind: expected an IPv4 address of this host, found ${JSON.stringify(bind)}`)
  }
  const chosen = mode ?? (proxy.length > 0 ? 'proxy' : 'host')
  const metricsAt = metrics === undefined ? null : metricsAddress(metrics)
  if (typeof metricsAt === 'string') throw fail(`--metrics: ${metricsAt}`)
  return { configured, mode: chosen, metricsAt }
}

/** @returns a clause for an error message if the address cannot be used. */
function metricsAddress(text: string): HostPort | string {
  const found = parseHostPort(/^\d+$/.test(text) ? `127.0.0.1:${text}` : text)
  if (found === null || isIP(found.host) === 0) {
    return `expected PORT, or ADDRESS:PORT with an address of this host, found ${JSON.stringify(text)}`
  }
  // @guard metrics-of-a-tunnel--every-address
  if (EVERY_ADDRESS.check(found.host, isIPv4(found.host) ? 'ipv4' : 'ipv6')) {
    return `exposes the metrics on every address of this host (${text}); name a private address`
  }
  return found
}

/** `::` and `0.0.0.0`, in all notations. */
const EVERY_ADDRESS = new BlockList()
EVERY_ADDRESS.addAddress('0.0.0.0')
EVERY_ADDRESS.addAddress('::', 'ipv6')
