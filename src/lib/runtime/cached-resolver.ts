import { type LookupAddress, type LookupOptions } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { readFileSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { isIP, isIPv4, type LookupFunction } from 'node:net'
import { dirname } from 'node:path'

import type { Clock } from '../clock.ts'
import { errorCode } from '../error-code.ts'
import { isJsonObject } from '../text/json-value.ts'

/** Limits for the addresses that the resolver stores for host names. */
export const lastAddressLimits = {
  hostsMax: 256,
  addressesPerHostMax: 8,
  hostCharactersMax: 253,
  fileBytesMax: 256 * 1024,
  /** Maximum time to wait for a lookup of a host whose last addresses are known. */
  lookupWaitMs: 1500,
  /**
   * After a lookup without a response, the resolver does not look up a host with known addresses
   * again for this long.
   */
  lookupAgainMs: 5000,
} as const

const { hostsMax, addressesPerHostMax, hostCharactersMax, fileBytesMax } = lastAddressLimits

/** Result of one lookup. */
export interface LookupResult {
  readonly addresses: readonly string[]
  /**
   * Whether a name server has responded. If it responded that the name does not exist, `addresses`
   * is empty.
   */
  readonly isAnswered: boolean
}

export type LookUpHost = (host: string) => Promise<LookupResult>

export interface Resolution {
  readonly addresses: readonly string[]
  /**
   * Reason why the addresses come from an earlier lookup, or why there are none; one clause. Null
   * if the addresses are current.
   */
  readonly fault: string | null
}

interface LastAddressesOptions {
  /** JSON file in which the addresses survive a restart; null: they are only in memory. */
  readonly path: string | null
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly lookUp?: LookUpHost
}

const WRITABLE_FOR_ALL = 0o002
const unanswered: LookupResult = { addresses: [], isAnswered: false }
/** Errors that mean that a name server responded and the name has no address. */
const codesOfNoAddress = new Set(['ENOTFOUND', 'ENODATA'])

/** Looks up a host with the system's resolver. */
export async function lookUpHost(host: string): Promise<LookupResult> {
  try {
    const found = await lookup(host, { all: true })
    return { addresses: found.map(({ address }) => address), isAnswered: true }
  } catch (error) {
    return failedLookup(error)
  }
}

/**
 * Turns the error of a lookup into a result.
 * @param error the error with which the lookup failed.
 */
export function failedLookup(error: unknown): LookupResult {
  return { addresses: [], isAnswered: codesOfNoAddress.has(errorCode(error)) }
}

/**
 * Resolves host names, and stores the last addresses of each name, so that peers find each other
 * while no name server responds. An outdated address is no risk, because peers prove their identity
 * with certificates.
 */
export class CachedResolver {
  readonly #path: string | null
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #lookUp: LookUpHost
  /** Addresses by host; the host that was looked up last is last. */
  readonly #known: Map<string, readonly string[]>
  readonly #pending = new Map<string, Promise<LookupResult>>()
  /** Monotonic ms of the last lookup that got no response, by host. */
  readonly #unansweredMs = new Map<string, number>()
  #saving: Promise<void> | null = null
  #mustSave = false

  constructor({ path, clock, lookUp = lookUpHost }: LastAddressesOptions) {
    this.#path = path
    this.#clock = clock
    this.#lookUp = lookUp
    this.#known = path === null ? new Map() : readFile(path)
  }

  async resolve(host: string): Promise<Resolution> {
    if (isIP(host) !== 0) return { addresses: [host], fault: null }
    const { addresses, isAnswered } = await this.#answer(host)
    if (addresses.length > 0) return { addresses, fault: null }
    if (isAnswered) return { addresses, fault: `${host}: the name server knows no address` }
    const known = this.#known.get(host) ?? []
    const fault = `${host}: the name server did not answer`
    if (known.length === 0) return { addresses, fault }
    const last = known.length === 1 ? 'address' : 'addresses'
    return { addresses: known, fault: `${fault}; trying the last ${last} ${known.join(', ')}` }
  }

  /**
   * Returns a lookup function for a socket.
   * @param onFault called if the addresses are not current, or if there are none.
   */
  lookupFor(onFault: (fault: string) => void): LookupFunction {
    return (host, options, callback) => {
      void this.resolve(host).then(({ addresses, fault }) => {
        if (fault !== null) onFault(fault)
        const found = ofFamily(addresses, options)
        const [first] = found
        if (first === undefined) {
          const reason = fault ?? `${host} has no address of the wanted family`
          callback(Object.assign(new Error(reason), { code: 'EAI_AGAIN' }), '')
        } else if (options.all === true) callback(null, found)
        else callback(null, first.address, first.family)
      })
    }
  }

  /** Resolves when everything is written to the file. */
  async saved(): Promise<void> {
    while (this.#saving !== null) await this.#saving
  }

  async #answer(host: string): Promise<LookupResult> {
    if (!this.#known.has(host)) return await this.#lookedUp(host)
    const unansweredMs = this.#unansweredMs.get(host) ?? -Infinity
    const sinceMs = this.#clock.monotonicMs() - unansweredMs
    if (sinceMs < lastAddressLimits.lookupAgainMs) return unanswered
    const { promise, resolve } = Promise.withResolvers<LookupResult>()
    const timer = setTimeout(() => resolve(unanswered), lastAddressLimits.lookupWaitMs)
    const answer = await Promise.race([this.#lookedUp(host), promise])
    clearTimeout(timer)
    if (!answer.isAnswered) this.#unansweredMs.set(host, this.#clock.monotonicMs())
    return answer
  }

  /** Looks up a host; concurrent calls for the same host share one lookup. */
  async #lookedUp(host: string): Promise<LookupResult> {
    const pending = this.#pending.get(host) ?? this.#begin(host)
    return await pending
  }

  #begin(host: string): Promise<LookupResult> {
    const lookedUp = this.#lookUp(host).then(
      (answer) => {
        this.#pending.delete(host)
        if (answer.addresses.length > 0) this.#remember(host, answer.addresses)
        return answer
      },
      () => {
        this.#pending.delete(host)
        return unanswered
      },
    )
    this.#pending.set(host, lookedUp)
    return lookedUp
  }

  #remember(host: string, found: readonly string[]): void {
    if (host.length > hostCharactersMax) return
    const before = this.#known.get(host) ?? []
    const addresses = [...new Set(found)].slice(0, addressesPerHostMax)
    this.#unansweredMs.delete(host)
    this.#known.delete(host)
    this.#known.set(host, addresses)
    for (const oldest of Array.from(this.#known.keys())) {
      if (this.#known.size <= hostsMax) break
      this.#known.delete(oldest)
      this.#unansweredMs.delete(oldest)
    }
    // The addresses are compared in sorted order, because name servers rotate the addresses of a
    // name.
    if (before.toSorted().join() !== addresses.toSorted().join()) this.#save()
  }

  #save(): void {
    this.#mustSave = true
    if (this.#path === null || this.#saving !== null) return
    this.#saving = this.#write(this.#path)
  }

  async #write(path: string): Promise<void> {
    while (this.#mustSave) {
      this.#mustSave = false
      const text = `${JSON.stringify(Object.fromEntries(this.#known), null, 2)}\n`
      try {
        await writeWhole(path, text)
      } catch {
        // The error is ignored: the addresses remain in memory, and the next change writes the file
        // again.
      }
    }
    this.#saving = null
  }
}

/**
 * Writes a file completely or not at all. If root writes it in a folder of another user that is not
 * writable for everyone, the file belongs to that user.
 */
async function writeWhole(path: string, text: string): Promise<void> {
  const partial = `${path}.new`
  await rm(partial, { force: true })
  const file = await open(partial, 'wx', 0o600)
  try {
    await file.writeFile(text)
    const { uid, gid, mode } = statSync(dirname(path))
    const isOfOneUser = (mode & WRITABLE_FOR_ALL) === 0
    if (process.geteuid?.() === 0 && isOfOneUser) await file.chown(uid, gid)
  } finally {
    await file.close()
  }
  await rename(partial, path)
}

/** An unreadable file counts as empty, because the addresses are only hints. */
function readFile(path: string): Map<string, readonly string[]> {
  try {
    if (statSync(path).size > fileBytesMax) return new Map()
    const saved: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (!isJsonObject(saved)) return new Map()
    const entries = Object.entries(saved).flatMap(
      ([host, value]): [string, readonly string[]][] => {
        const list: readonly unknown[] = Array.isArray(value) ? value : []
        const addresses = list.filter(
          (one) => typeof one === 'string' && isIP(one) !== 0,
        ) as string[]
        const isUsable = addresses.length > 0 && host.length <= hostCharactersMax
        return isUsable ? [[host, addresses.slice(0, addressesPerHostMax)]] : []
      },
    )
    return new Map(entries.slice(-hostsMax))
  } catch {
    return new Map()
  }
}

function ofFamily(addresses: readonly string[], { family }: LookupOptions): LookupAddress[] {
  const wanted = family === 'IPv4' ? 4 : family === 'IPv6' ? 6 : (family ?? 0)
  return addresses
    .map((address) => ({ address, family: isIPv4(address) ? 4 : 6 }))
    .filter((found) => wanted === 0 || found.family === wanted)
}
