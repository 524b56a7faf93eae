import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'

import type { Random } from '../../lib/random.ts'
import type { HostPort } from '../../lib/text/names.ts'
import { interceptLimits } from './limits.ts'
import { type DnsQuery, isMatchingDnsResponse, withDnsId } from './dns-message.ts'

export type UpstreamMode = 'parallel' | 'serial' | 'failover' | 'random'

const DNS_IDS = 0x1_0000
const { upstreamQueriesMax, upstreamQueryMs } = interceptLimits

/** Forwards queries for names that belong to no service to the configured name servers. */
export class DnsUpstream {
  readonly #servers: readonly HostPort[]
  readonly #mode: UpstreamMode
  readonly #random: Random
  /** Index of the server that responded last; not tracked in mode `parallel`. */
  #preferred = 0
  #asked = 0

  constructor(servers: readonly HostPort[], mode: UpstreamMode, random: Random) {
    this.#servers = servers
    this.#mode = mode
    this.#random = random
  }

  get servers(): readonly HostPort[] {
    return this.#servers
  }

  /**
   * @returns the response with the ID of the query; null if there is no response, or if too many
   * queries are pending.
   */
  async ask(query: DnsQuery): Promise<Buffer | null> {
    // @guard names-at-a-host--flood
    if (this.#asked >= upstreamQueriesMax) return null
    this.#asked += 1
    try {
      const answer = await this.#ask(query)
      return answer === null ? null : withDnsId(answer, query.id)
    } finally {
      this.#asked -= 1
    }
  }

  async #ask(query: DnsQuery): Promise<Buffer | null> {
    const order = this.#order()
    if (this.#mode === 'parallel') {
      return Promise.any(order.map(({ server }) => exchanged(server, query))).catch(() => null)
    }
    for (const { server, at } of order) {
      const answer = await exchanged(server, query).catch(() => null)
      if (answer === null) continue
      this.#preferred = at
      return answer
    }
    return null
  }

  #order(): readonly { readonly server: HostPort; readonly at: number }[] {
    const { length } = this.#servers
    const first = new Map([
      ['failover', this.#preferred],
      ['random', Math.floor(this.#random.next() * length)],
    ])
    const begin = first.get(this.#mode) ?? 0
    const all = this.#servers.map((server, at) => ({ server, at }))
    return [...all.slice(begin), ...all.slice(0, begin)]
  }
}

/**
 * Sends one query from a random port with a random ID. Accepts only a matching response from this
 * server.
 * @throws {Error} if none arrives in time.
 */
async function exchanged({ host, port }: HostPort, query: DnsQuery): Promise<Buffer> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  // @guard names-at-a-host--guessed
  const id = randomInt(DNS_IDS)
  const timer = setTimeout(() => reject(new Error('no answer in time')), upstreamQueryMs)
  socket.on('error', reject)
  socket.on('message', (answer) => {
    if (isMatchingDnsResponse(query, id, answer)) resolve(answer)
  })
  socket.connect(port, host, () => socket.send(withDnsId(query.bytes, id)))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    socket.close()
  }
}
