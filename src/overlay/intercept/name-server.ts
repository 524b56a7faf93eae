import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'

import { errorMessage } from '../../lib/error-code.ts'
import { formatHostPort, type HostPort } from '../../lib/text/names.ts'
import { interceptLimits } from './limits.ts'
import { bindDatagrams } from '../sockets/bind-datagrams.ts'
import { ProgramFailure } from '../failure.ts'
import type { ProgramLogger } from '../logger.ts'
import {
  dnsResponse,
  dnsResponseCode,
  dnsRecordType,
  type DnsQuery,
  readDnsQuery,
} from './dns-message.ts'
import type { DnsUpstream } from './dns-upstream.ts'

/**
 * The address of a service name; `unclaimed`: no service has this name; `unavailable`: the name
 * cannot get an address now.
 */
export type ResolvedName = { readonly address: string } | 'unclaimed' | 'unavailable'

export interface NameServerDeps {
  readonly bind: HostPort
  /** Whether a source may send queries; others are ignored. */
  readonly isClient: (address: string) => boolean
  readonly resolve: (name: string) => Promise<ResolvedName>
  /** Forwards queries for other names; null: these are answered according to `unanswerable`. */
  readonly upstream: DnsUpstream | null
  readonly unanswerable: 'timeout' | 'servfail' | 'refused'
  readonly log: ProgramLogger
}

const { nameQueryBytesMax, serviceNameTtlSeconds } = interceptLimits

/**
 * Name server for this host and the networks that it serves: answers queries for service names and
 * forwards other queries. It ignores queries from other sources, so it cannot be abused as an open
 * resolver or for amplification attacks.
 */
export class NameServer {
  readonly #deps: NameServerDeps
  readonly #socket: Socket
  #isClosed = false
  #queries = 0
  #dropped = 0

  constructor(deps: NameServerDeps) {
    this.#deps = deps
    this.#socket = createSocket(isIPv6(deps.bind.host) ? 'udp6' : 'udp4')
    this.#socket.on('message', (bytes, from) => void this.#onMessage(bytes, from))
  }

  get port(): number {
    return this.#socket.address().port
  }

  /** Numbers of queries from clients and of dropped messages. */
  get counts(): { readonly queries: number; readonly dropped: number } {
    return { queries: this.#queries, dropped: this.#dropped }
  }

  /** @throws {ProgramFailure} when it cannot listen. */
  async start(): Promise<void> {
    const { bind, log } = this.#deps
    try {
      await bindDatagrams(this.#socket, bind)
    } catch (error) {
      this.#isClosed = true
      throw new ProgramFailure(
        `the name server of the tunnel cannot listen on udp:${formatHostPort(bind)}: ${errorMessage(error)}; name another address with options.resolver, and stop what listens there`,
        { cause: error },
      )
    }
    this.#socket.on('error', (error) => log.warn({ err: error }, 'name server failed'))
  }

  async stop(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#socket.close(() => resolve())
    await promise
  }

  async #onMessage(bytes: Buffer, from: RemoteInfo): Promise<void> {
    // @guard names-at-a-host--source
    const isTaken = bytes.length <= nameQueryBytesMax && this.#deps.isClient(from.address)
    const query = isTaken ? readDnsQuery(bytes) : null
    if (query === null) {
      this.#dropped += 1
      return
    }
    this.#queries += 1
    try {
      const answer = await this.#answer(query)
      if (answer !== null && !this.#isClosed) {
        this.#socket.send(answer, from.port, from.address, () => undefined)
      }
    } catch (error) {
      this.#deps.log.warn({ reason: errorMessage(error) }, 'a name could not be answered')
    }
  }

  /** The response to a query; null if none is sent. */
  async #answer(query: DnsQuery): Promise<Buffer | null> {
    const { resolve, upstream } = this.#deps
    const { name, type, isInternet } = query
    const found = name === null || !isInternet ? 'unclaimed' : await resolve(name)
    if (found === 'unclaimed') return (await upstream?.ask(query)) ?? this.#unanswerable(query)
    if (found === 'unavailable') return dnsResponse(query, dnsResponseCode.serverFailure)
    // Service names have only IPv4 addresses, so the response to a query for another type contains
    // no records.
    const addresses = type === dnsRecordType.a || type === dnsRecordType.any ? [found.address] : []
    return dnsResponse(query, dnsResponseCode.none, addresses, serviceNameTtlSeconds)
  }

  #unanswerable(query: DnsQuery): Buffer | null {
    switch (this.#deps.unanswerable) {
      case 'timeout':
        return null
      case 'servfail':
        return dnsResponse(query, dnsResponseCode.serverFailure)
      case 'refused':
        return dnsResponse(query, dnsResponseCode.refused)
    }
  }
}
