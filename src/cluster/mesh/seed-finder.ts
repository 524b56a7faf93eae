import { connect, type SecureContext } from 'node:tls'

import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import type { Resolution } from '../../lib/runtime/cached-resolver.ts'
import { parseHostPort } from '../../lib/text/names.ts'
import { peerLeafDer } from '../../lib/runtime/peer-certificates.ts'
import { leafControllerId, parseCertificate } from '../../pki/certificate.ts'
import type { NodeId } from '../../raft/types.ts'

interface SeedFinderOptions {
  /** host:port; a name may resolve to many addresses. */
  readonly seeds: readonly string[]
  readonly trustDomain: string
}

interface SeedFinderDeps {
  /** Resolves a seed to host:port with IP addresses. */
  readonly resolve: (seed: string) => Promise<Resolution>
  readonly secureContext: () => SecureContext
  /** True while the link to at least one member is not ready. */
  readonly isSearching: () => boolean
  /** Whether a known member uses this address, so that it need not be probed. */
  readonly isTaken: (address: string) => boolean
  /** Called when a controller with a certificate of this cluster's CA responded at this address. */
  readonly onFound: (id: NodeId, address: string) => void
}

const SEARCH_MS = 1000
const TIMEOUT_MS = 1500
/**
 * Pause before the finder again probes an address at which it found a controller. It also limits
 * probes of this controller's own address, which is often a seed.
 */
const REST_MS = 5000
const RESTING_MAX = 1000
export const SEED_LIMITS = {
  /** Maximum addresses that one search probes; further addresses are ignored. */
  addressesMax: 64,
} as const

/**
 * While members are unreachable, probes every address of the seeds with a TLS handshake, without
 * sending a request. In this way, the members find each other through one DNS name, without a
 * quorum, even if all their addresses have changed.
 */
export class SeedFinder {
  readonly #options: SeedFinderOptions
  readonly #deps: SeedFinderDeps
  readonly #asking = new Set<string>()
  /**
   * Monotonic ms until which the finder does not probe an address again, because it has just found
   * the controller there.
   */
  readonly #restingUntilMs = new Map<string, number>()
  #stopTimer: (() => void) | null = null
  #isSearching = false

  constructor(options: SeedFinderOptions, deps: SeedFinderDeps) {
    this.#options = options
    this.#deps = deps
  }

  start(): void {
    if (this.#options.seeds.length === 0 || this.#stopTimer !== null) return
    this.#stopTimer = periodicScheduler.every(SEARCH_MS, () => void this.#search())
    void this.#search()
  }

  stop(): void {
    this.#stopTimer?.()
    this.#stopTimer = null
  }

  async #search(): Promise<void> {
    if (this.#isSearching || !this.#deps.isSearching()) return
    this.#isSearching = true
    const { seeds } = this.#options
    const found = await Promise.all(seeds.map(async (seed) => await this.#deps.resolve(seed)))
    this.#isSearching = false
    const addresses = new Set(found.flatMap((one) => one.addresses))
    for (const address of [...addresses].slice(0, SEED_LIMITS.addressesMax)) void this.#ask(address)
  }

  async #ask(address: string): Promise<void> {
    const isResting = (this.#restingUntilMs.get(address) ?? 0) > performance.now()
    if (this.#stopTimer === null || this.#asking.has(address) || isResting) return
    if (this.#deps.isTaken(address)) return
    this.#asking.add(address)
    const id = await probeControllerId(
      address,
      this.#deps.secureContext(),
      this.#options.trustDomain,
    )
    this.#asking.delete(address)
    if (id === null || this.#stopTimer === null) return
    if (this.#restingUntilMs.size >= RESTING_MAX) this.#restingUntilMs.clear()
    this.#restingUntilMs.set(address, performance.now() + REST_MS)
    this.#deps.onFound(id, address)
  }
}

/**
 * Id of the controller whose mesh listens at an address (host:port), found without sending a
 * request.
 * @param secureContext with the CA of the cluster.
 * @returns null when no peer responds in time, or the peer is not a controller of this CA and trust
 * domain.
 */
export async function probeControllerId(
  address: string,
  secureContext: SecureContext,
  trustDomain: string,
  timeoutMs = TIMEOUT_MS,
): Promise<NodeId | null> {
  const target = parseHostPort(address)
  if (target === null) return null
  return await new Promise((resolve) => {
    const socket = connect({
      ...target,
      secureContext,
      ALPNProtocols: ['h2'],
      servername: 'mesh.flotilla',
      timeout: timeoutMs,
      // TLS verifies the chain against the cluster CA. The SPIFFE id in the certificate is checked
      // instead of the host name.
      checkServerIdentity: () => undefined,
    })
    const timer = setTimeout(() => end(null), timeoutMs)
    const end = (id: NodeId | null): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(id)
    }
    socket.on('error', () => end(null))
    socket.on('close', () => end(null))
    socket.on('secureConnect', () => {
      try {
        const shown = peerLeafDer(socket)
        end(shown === null ? null : leafControllerId(parseCertificate(shown), trustDomain))
      } catch {
        end(null)
      }
    })
  })
}
