import { execFile } from 'node:child_process'

import { errorCode, errorMessage } from '../../lib/error-code.ts'
import { networkContains, createIpNetwork } from '../../lib/text/networks.ts'
import { interceptTargetLimits } from '../../lib/intercept/limits.ts'
import { parseIp } from '../../lib/text/ip-address.ts'
import type { ProgramLogger } from '../logger.ts'
import { interceptLimits } from './limits.ts'
import type { RedirectedPorts } from './listening-plan.ts'

/**
 * Runs the command `nft` of nftables with this input. @throws with its error output if it fails.
 */
export type RunNftScript = (script: string) => Promise<void>

/** Ports that are redirected, and the listening port that receives their connections. */
export interface Redirect {
  readonly place: RedirectedPorts
  readonly port: number
}

export interface PortRedirectorDeps {
  /** Distinguishes the rules of several tunnels on one host. */
  readonly owner: string
  readonly run: RunNftScript
  readonly log: ProgramLogger
}

/**
 * First two bytes of the loopback addresses that represent ports; the last two bytes are the port
 * number.
 */
const PORTS_NETWORK = '127.187'
const portsNetwork = createIpNetwork(`${PORTS_NETWORK}.0.0`, 16)
/**
 * Address on which datagram listeners for redirected ports listen. Stream listeners listen on all
 * addresses, because each port has another loopback address.
 */
export const DATAGRAM_LISTENER_HOST = '127.0.0.1'

const { redirectedPortsPerCommandMax, routeCommandMs } = interceptLimits

/**
 * Runs `nft` with a script on standard input.
 * @throws if its exit status is not 0, or on a timeout.
 */
export async function runNftScript(script: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const child = execFile(
    'nft',
    ['-f', '-'],
    { timeout: routeCommandMs },
    (error, _stdout, stderr) => {
      if (error === null) resolve()
      else {
        const said = stderr.trim() === '' ? errorMessage(error) : stderr.trim()
        reject(Object.assign(new Error(said), { code: errorCode(error) }))
      }
    },
  )
  // A command that ends early closes its standard input. The resulting error is ignored, because
  // the exit status shows the failure.
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(script)
  await promise
}

/** The port that a loopback address of the rules represents; null for any other address. */
export function redirectedPort(address: string): number | null {
  const ip = parseIp(address)
  if (ip === null || portsNetwork === null || !networkContains(portsNetwork, ip)) return null
  const [, , high = 0, low = 0] = ip.text.split('.').map(Number)
  return high * 256 + low
}

function addressOfPort(port: number): string {
  return `${PORTS_NETWORK}.${port >> 8}.${port & 255}`
}

/**
 * Adds rules to the host that redirect many ports of an address to one port of this process.
 * Node.js cannot read the original destination of a redirected connection, so the rules put the
 * port into an address: the destination of a stream, and the source of a datagram, becomes the
 * loopback address that represents the port. The kernel keeps the rules when the process ends; the
 * next start removes them.
 */
export class PortRedirector {
  readonly #deps: PortRedirectorDeps
  readonly #table: string
  /** Ports in the table's map; null if there is no table. */
  #ports: Set<number> | null = null
  #rules = ''

  constructor(deps: PortRedirectorDeps) {
    this.#deps = deps
    this.#table = `ip flotilla-tunnel-${deps.owner}`
  }

  /**
   * Removes rules that an earlier process left behind. @returns why this host cannot redirect
   * ports; null if it can.
   */
  async start(): Promise<string | null> {
    try {
      await this.#deps.run(this.#removal())
      return null
    } catch (error) {
      return redirectFault(error)
    }
  }

  /**
   * Changes the rules so that they match the given redirects.
   * @throws {Error} if the host does not permit changes of its rules.
   */
  async set(redirects: readonly Redirect[]): Promise<void> {
    if (redirects.length === 0) return await this.stop()
    const rules = redirects.map((redirect) => this.#rule(redirect)).join('\n')
    if (rules === this.#rules) return
    const ports = (this.#ports ??= await this.#create())
    const wanted = new Set(redirects.flatMap(({ place }) => place.ranges.flatMap(portsOf)))
    const added = [...wanted].filter((port) => !ports.has(port))
    for (let at = 0; at < added.length; at += redirectedPortsPerCommandMax) {
      const some = added.slice(at, at + redirectedPortsPerCommandMax)
      const elements = some.map((port) => `${port} : ${addressOfPort(port)}`).join(', ')
      await this.#deps.run(`add element ${this.#table} ports { ${elements} }`)
      for (const port of some) ports.add(port)
    }
    await this.#deps.run(
      `flush chain ${this.#table} out\nflush chain ${this.#table} sources\n${rules}`,
    )
    this.#rules = rules
  }

  /** Removes all rules; connections that are already redirected continue. */
  async stop(): Promise<void> {
    if (this.#ports === null) return
    this.#ports = null
    this.#rules = ''
    try {
      await this.#deps.run(this.#removal())
    } catch (error) {
      this.#deps.log.warn(
        { reason: errorMessage(error) },
        'rules of intercepted services were not removed; the next start of this tunnel removes them',
      )
    }
  }

  async #create(): Promise<Set<number>> {
    await this.#deps.run(`${this.#removal()}
table ${this.#table} {
  map ports { type inet_service : ipv4_addr; }
  chain out { type nat hook output priority -100; policy accept; }
  chain sources { type nat hook postrouting priority 100; policy accept; }
}`)
    return new Set()
  }

  /** `add` comes first, because `delete` would fail if the table did not exist. */
  #removal(): string {
    return `add table ${this.#table}\ndelete table ${this.#table}`
  }

  #rule({ place: { protocol, address, ranges }, port }: Redirect): string {
    const ports = ranges.map(({ low, high }) => `${low}-${high}`)
    const to =
      protocol === 'tcp' ? `tcp dport map @ports : ${port}` : `${DATAGRAM_LISTENER_HOST} : ${port}`
    const out = ports.map(
      (range) =>
        `add rule ${this.#table} out ip daddr ${address.text} ${protocol} dport ${range} dnat to ${to}`,
    )
    if (protocol === 'tcp') return out.join('\n')
    const back = `add rule ${this.#table} sources ip daddr ${DATAGRAM_LISTENER_HOST} udp dport ${port} ct status dnat snat to ct original proto-dst map @ports`
    return [...out, back].join('\n')
  }
}

function portsOf({ low, high }: { readonly low: number; readonly high: number }): number[] {
  return Array.from({ length: high - low + 1 }, (_, at) => low + at)
}

function redirectFault(error: unknown): string {
  const needs =
    errorCode(error) === 'ENOENT'
      ? 'the program nft is missing (Debian: apt-get install nftables)'
      : `nft failed: ${errorMessage(error)}`
  return `port ranges that need more than ${interceptTargetLimits.interceptListenersPerServiceMax} ports to listen on are redirected, and ${needs}`
}
