import { hash } from 'node:crypto'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'

import { errorCode, errorMessage } from '../../lib/error-code.ts'
import { parseJsonOrNull } from '../../lib/text/json-value.ts'
import { interceptLimits } from './limits.ts'
import { ProgramFailure } from '../failure.ts'
import type { ProgramLogger } from '../logger.ts'
import { type IpNetwork, isSingleAddress, formatIpNetwork } from '../../lib/text/networks.ts'

/**
 * Runs the command `ip` of iproute2. @returns its output. @throws with its error output if it
 * fails.
 */
export type RunIpCommand = (args: readonly string[]) => Promise<string>

interface LocalRouteManagerDeps {
  /** Distinguishes the routes of several routers and tunnels on one host. */
  readonly routerId: string
  readonly run: RunIpCommand
  readonly log: ProgramLogger
}

/**
 * Number by which the kernel marks the routes of this program; no routing daemon uses it
 * (rt_protos).
 */
const PROTOCOL = '187'
/**
 * Lowest route metric by which a router or tunnel is identified; far above the metrics that
 * administrators use.
 */
const METRIC_MIN = 0x4000_0000
const METRICS = 0x3fff_ffff
/** Number of the capability (linux/capability.h). */
const CAP_NET_ADMIN = 12n
const FAMILIES = ['-4', '-6'] as const

const execute = promisify(execFile)

/**
 * Runs the command `ip`.
 * @returns its output.
 * @throws if its exit status is not 0, or on a timeout.
 */
export async function runIpCommand(args: readonly string[]): Promise<string> {
  const { routeCommandMs } = interceptLimits
  try {
    const { stdout } = await execute('ip', args, { timeout: routeCommandMs })
    return stdout
  } catch (error) {
    const { stderr } = error as { readonly stderr?: unknown }
    const said = typeof stderr === 'string' ? stderr.trim() : ''
    const status = readFileSync('/proc/self/status', 'utf8')
    throw Object.assign(new Error(ipFailureReason(said, errorMessage(error), status)), {
      code: errorCode(error),
    })
  }
}

/**
 * Why the command `ip` failed. `ip` of Debian 12 prints nothing when the system call filter of the
 * systemd unit keeps it from dropping its capabilities, so a missing capability is read from the
 * status of this process.
 * @param said error output of the command; '' if there is none.
 * @param status text of /proc/self/status.
 */
export function ipFailureReason(said: string, message: string, status: string): string {
  if (said !== '') return said
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
  const isCapable = ((effective >> CAP_NET_ADMIN) & 1n) === 1n
  return isCapable ? message : `operation not permitted without CAP_NET_ADMIN: ${message}`
}

/**
 * Makes this host treat the addresses of networks as its own, so that programs can listen on them
 * (AnyIP). For this, it adds routes to the table `local`. A single IPv6 address is assigned to the
 * interface `lo` instead, because a program can listen on an IPv6 address only if it is assigned.
 * The kernel keeps routes and addresses when the process ends. After a process was killed, the next
 * start finds them by protocol and metric, and removes them.
 */
export class LocalRouteManager {
  readonly #deps: LocalRouteManagerDeps
  readonly #metric: string
  /** Routes by the text of their network. */
  readonly #made = new Map<string, IpNetwork>()
  readonly #failed = new Map<string, string>()

  constructor(deps: LocalRouteManagerDeps) {
    this.#deps = deps
    const drawn = Number.parseInt(hash('sha256', deps.routerId).slice(0, 8), 16)
    this.#metric = String(METRIC_MIN + (drawn % METRICS))
  }

  /** Identifies the changes of this tunnel to its host. */
  get owner(): string {
    return this.#metric
  }

  has(address: string): boolean {
    return this.#made.has(`${address}/128`)
  }

  get networks(): readonly string[] {
    return [...this.#made.keys()]
  }

  /**
   * Removes routes that an earlier process left behind, and checks that routes can be added.
   * @throws {ProgramFailure} if this machine does not permit that.
   */
  async start(first: IpNetwork): Promise<void> {
    try {
      await this.#clear()
      await this.#change('replace', first)
      this.#made.set(formatIpNetwork(first), first)
    } catch (error) {
      throw startFailure(error)
    }
  }

  /**
   * Adds and removes routes so that they match the given networks; logs routes that cannot be
   * added.
   */
  async set(wanted: readonly IpNetwork[]): Promise<void> {
    const { localRoutesMax } = interceptLimits
    const byText = new Map(wanted.map((network) => [formatIpNetwork(network), network]))
    for (const [text, network] of Array.from(this.#made)) {
      // @guard addresses-a-service-takes--route
      if (!byText.has(text)) await this.#remove(text, network)
    }
    for (const text of this.#failed.keys()) if (!byText.has(text)) this.#failed.delete(text)
    for (const [text, network] of byText) {
      if (this.#made.has(text)) continue
      if (this.#made.size < localRoutesMax) await this.#make(text, network)
      else this.#fail(text, `this host has ${localRoutesMax} such routes already`)
    }
  }

  /** Removes all routes. */
  async stop(): Promise<void> {
    this.#made.clear()
    try {
      await this.#clear()
    } catch (error) {
      this.#deps.log.warn(
        { reason: errorMessage(error) },
        'routes of intercepted services were not removed; the next start of this tunnel removes them',
      )
    }
  }

  async #make(text: string, network: IpNetwork): Promise<void> {
    try {
      await this.#change('replace', network)
      this.#made.set(text, network)
      this.#failed.delete(text)
    } catch (error) {
      this.#fail(text, errorMessage(error))
    }
  }

  async #remove(text: string, network: IpNetwork): Promise<void> {
    this.#made.delete(text)
    try {
      await this.#change('del', network)
    } catch (error) {
      this.#deps.log.warn({ network: text, reason: errorMessage(error) }, 'route not removed')
    }
  }

  #fail(network: string, reason: string): void {
    if (this.#failed.get(network) === reason) return
    this.#failed.set(network, reason)
    this.#deps.log.error({ network, reason }, 'network not intercepted: no route to this host')
  }

  async #change(verb: 'replace' | 'del', network: IpNetwork): Promise<void> {
    const text = formatIpNetwork(network)
    const { run } = this.#deps
    if (network.address.family === 'ipv4') await run(['-4', ...this.#route(verb, text)])
    else if (!isSingleAddress(network)) await run(['-6', ...this.#route(verb, text)])
    else if (verb === 'del') await run(['-6', 'address', 'del', text, 'dev', 'lo'])
    else {
      // No other host uses this address on `lo`, so duplicate address detection is not needed.
      const mark = ['metric', this.#metric, 'nodad']
      await run(['-6', 'address', 'replace', text, 'dev', 'lo', ...mark])
    }
  }

  #route(verb: string, text: string): readonly string[] {
    return ['route', verb, 'local', text, 'dev', 'lo', ...this.#mark()]
  }

  #mark(): readonly string[] {
    return ['table', 'local', 'proto', PROTOCOL, 'metric', this.#metric]
  }

  async #clear(): Promise<void> {
    const { run } = this.#deps
    for (const family of FAMILIES) await run([family, 'route', 'flush', ...this.#mark()])
    const shown = parseJsonOrNull(await run(['-j', '-6', 'address', 'show', 'dev', 'lo']))
    for (const { local, metric } of addressesShown(shown)) {
      if (String(metric) !== this.#metric) continue
      await run(['-6', 'address', 'del', `${String(local)}/128`, 'dev', 'lo'])
    }
  }
}

interface ShownAddress {
  readonly local?: unknown
  readonly metric?: unknown
}

function addressesShown(shown: unknown): readonly ShownAddress[] {
  const interfaces = Array.isArray(shown) ? (shown as readonly unknown[]) : []
  return interfaces.flatMap((one) => {
    const { addr_info: found } = (one ?? {}) as { readonly addr_info?: unknown }
    return Array.isArray(found) ? (found as readonly ShownAddress[]) : []
  })
}

function startFailure(error: unknown): ProgramFailure {
  const reason = errorMessage(error)
  if (errorCode(error) === 'ENOENT') {
    return new ProgramFailure(
      'the tunnel has mode tproxy, which needs the program ip of iproute2: install it (Debian: apt-get install iproute2), or use mode proxy',
    )
  }
  const isForbidden = /not permitted|permission denied/i.test(reason)
  return new ProgramFailure(
    isForbidden
      ? 'the tunnel has mode tproxy, which needs the capability CAP_NET_ADMIN: run this program as root, or install the drop-in deploy/systemd/drop-ins/tproxy.conf for its systemd unit, or use mode proxy'
      : `the tunnel has mode tproxy, and this machine makes no route for it: ${reason}`,
    { cause: error },
  )
}
