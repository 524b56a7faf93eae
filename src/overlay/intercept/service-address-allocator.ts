import type { Clock } from '../../lib/clock.ts'
import { interceptLimits } from './limits.ts'
import type { IpAddress } from '../../lib/text/ip-address.ts'
import { type IpNetwork, addressAt, networkSize } from '../../lib/text/networks.ts'

interface NamedAddress {
  readonly address: IpAddress
  usedAtMs: number
}

const { serviceNamesMax, serviceNameIdleMs } = interceptLimits
/**
 * Skips the network address and the first host address, because operators often use the latter for
 * a name server.
 */
const ADDRESSES_LEFT_OUT = 2

/**
 * Assigns addresses of one network to service names. A name keeps its address while the process
 * runs; but if there are too many names, one that was not used for a long time loses its address.
 * Such an address is assigned again as late as possible, because a client may still have it in its
 * cache.
 */
export class ServiceAddressAllocator {
  readonly #network: IpNetwork
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #isInUse: (address: IpAddress) => boolean
  /** Names with their addresses, least recently used first. */
  readonly #names = new Map<string, NamedAddress>()
  readonly #byAddress = new Map<string, string>()
  #next = ADDRESSES_LEFT_OUT

  /** @param isInUse returns whether a connection to the address is open. */
  constructor(
    network: IpNetwork,
    clock: Pick<Clock, 'monotonicMs'>,
    isInUse: (address: IpAddress) => boolean,
  ) {
    this.#network = network
    this.#clock = clock
    this.#isInUse = isInUse
  }

  get names(): ReadonlyMap<string, { readonly address: IpAddress }> {
    return this.#names
  }

  nameOf(address: IpAddress): string | null {
    return this.#byAddress.get(address.text) ?? null
  }

  /** The address of a name, which counts as used now. null if there are too many names. */
  use(name: string): IpAddress | null {
    const known = this.#names.get(name)
    const address = known?.address ?? this.#free()
    if (address === null) return null
    this.#names.delete(name)
    this.#names.set(name, { address, usedAtMs: this.#clock.monotonicMs() })
    this.#byAddress.set(address.text, name)
    return address
  }

  forget(name: string): void {
    const known = this.#names.get(name)
    if (known === undefined) return
    this.#names.delete(name)
    this.#byAddress.delete(known.address.text)
  }

  #free(): IpAddress | null {
    const size = Math.min(networkSize(this.#network), Number.MAX_SAFE_INTEGER)
    // @guard names-at-a-host--names
    const room = Math.min(serviceNamesMax, size - ADDRESSES_LEFT_OUT - 1)
    if (this.#names.size >= room && !this.#forgetIdle()) return null
    for (;;) {
      // Skips the broadcast address, the last one of the network.
      if (this.#next >= size - 1) this.#next = ADDRESSES_LEFT_OUT
      const address = addressAt(this.#network, this.#next)
      this.#next += 1
      if (address !== null && !this.#byAddress.has(address.text)) return address
    }
  }

  #forgetIdle(): boolean {
    const beforeMs = this.#clock.monotonicMs() - serviceNameIdleMs
    for (const [name, { address, usedAtMs }] of this.#names) {
      if (usedAtMs > beforeMs) return false
      if (this.#isInUse(address)) continue
      this.forget(name)
      return true
    }
    return false
  }
}
