import { flushCompileCache } from 'node:module'
import { isIPv4 } from 'node:net'

import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/failure.ts'
import { programVersion, programVersionLine } from '../../controller/version.ts'
import { systemClock } from '../../lib/clock.ts'
import { LastAddresses } from '../../lib/runtime/last-addresses.ts'
import { TargetSockets } from '../../overlay/sockets/target-sockets.ts'
import { ProgramFailure } from '../../overlay/failure.ts'
import {
  type ConfiguredServicePort,
  parseConfiguredService,
} from '../../overlay/services/offered-services.ts'
import { limitHeapGrowth } from '../../threads/collect-buffers.ts'
import { IdentityTunnel } from '../../tunnel/identity-tunnel.ts'
import { tunnelLimits } from '../../tunnel/limits.ts'
import {
  createProgramLog,
  exitUnlessStopped,
  stopSignal,
  switchLevelOnSignal,
  systemRandom,
} from '../terminal/long-running.ts'
import { ServiceManager } from '../terminal/service-manager.ts'
import { CertificateApi } from '../client/certificate-api.ts'
import { readIdentityFile } from './identity-file.ts'

export interface RunTunnelOptions {
  readonly identity: readonly string[]
  readonly mode?: 'host' | 'proxy' | 'tproxy'
  readonly proxy?: readonly string[]
  readonly bind: string
  readonly resolver: string
  readonly dnsUpstream?: readonly string[]
  readonly dnsRange: string
  readonly logLevel: string
}

/** Options of a `tunnel` listener of a router that this command sets itself. */
const fixedOptions = {
  getCircuitTimeout: 30_000,
  udpIdleTimeout: 0,
  dnsUpstreamMode: 'parallel',
  dnsUnanswerable: 'refused',
  lanIf: null,
} as const

/**
 * Serves enrolled identities until SIGTERM or SIGINT.
 * @throws {CommandFailure} exit 2 for invalid options or files, 1 when it cannot start.
 */
export async function runTunnel(options: RunTunnelOptions): Promise<void> {
  const { configured, mode } = checkedOptions(options)
  const identities = options.identity.map((path) => ({ path, ...readIdentityFile(path) }))
  const log = createProgramLog(options.logLevel)
  switchLevelOnSignal(log, options.logLevel)
  const { env, pid } = process
  const serviceManager = new ServiceManager({ env, pid, log })
  const stopped = stopSignal(log, 'tunnel')
  const sockets = new TargetSockets()
  const tunnels = identities.map((identity) => {
    const names = new LastAddresses({ path: `${identity.path}.addresses`, clock: systemClock })
    return new IdentityTunnel({
      options: {
        ...fixedOptions,
        mode,
        resolver: [options.resolver],
        dnsSvcIpRange: options.dnsRange,
        dnsUpstream: options.dnsUpstream ?? null,
      },
      configured,
      anyAddress: options.bind,
      credential: identity,
      names,
      api: new CertificateApi({ ...identity, names }),
      origin: identity.origin,
      sockets,
      version: programVersionLine(),
      clock: systemClock,
      random: systemRandom,
      log: identities.length === 1 ? log : log.child({ file: identity.path }),
    })
  })
  log.info({ mode, version: programVersion(), pid }, 'tunnel running')
  // The tunnel waits for a controller if none answers, and the start of the unit must not wait for
  // it.
  serviceManager.ready(`runs in mode ${mode}`)
  // Before the V8 flags change, because they are part of the key of compiled code.
  flushCompileCache()
  limitHeapGrowth()
  try {
    await Promise.race([stopped, startAll(tunnels, stopped)])
  } catch (error) {
    if (!(error instanceof ProgramFailure)) throw error
    throw new CommandFailure(EXIT_FAILED, error.message, error)
  } finally {
    serviceManager.stopping()
    const all = Promise.all(tunnels.map((tunnel) => tunnel.stop()))
    await exitUnlessStopped(
      tunnelLimits.stopMsMax,
      all.then(() => undefined),
    )
  }
  log.info({}, 'tunnel stopped')
}

/** Resolves with the signal. Rejects if one of the tunnels cannot continue. */
async function startAll(tunnels: readonly IdentityTunnel[], stopped: Promise<void>): Promise<void> {
  await Promise.all(tunnels.map((tunnel) => tunnel.start()))
  await stopped
}

function checkedOptions({ identity, mode, proxy = [], bind }: RunTunnelOptions): {
  readonly configured: readonly ConfiguredServicePort[]
  readonly mode: string
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
  return { configured, mode: chosen }
}
