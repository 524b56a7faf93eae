import { randomUUID } from 'node:crypto'

import type { ChannelMessage } from '../channel/frame.ts'
import { encodeText } from '../channel/headers.ts'
import { type VersionLine, formatVersionLine } from '../channel/hello.ts'
import { channelLimits } from '../channel/limits.ts'
import { dialChannel } from '../channel/dial.ts'
import { channelContentType, HELLO_SEQUENCE, channelHeaderKey } from '../channel/numbers.ts'
import type { CachedResolver } from '../lib/runtime/cached-resolver.ts'
import type { Clock } from '../lib/clock.ts'
import { errorMessage } from '../lib/error-code.ts'
import type { Random } from '../lib/random.ts'
import { formatHostPort } from '../lib/text/names.ts'
import { EDGE_PROTOCOL, edgeHeaderKey } from '../channel/messages/edge.ts'
import type { ProgramLogger } from '../overlay/logger.ts'
import type { TunnelCounts } from './tunnel-counts.ts'
import { EdgeChannel } from './edge-channel.ts'
import type { EdgeCircuits } from './edge-circuits.ts'
import type { IdentityCertificate } from './identity-certificate.ts'
import { tunnelLimits } from './limits.ts'
import type { UsableEdgeRouter } from './edge-router-addresses.ts'
import { circuitDataTypes } from '../channel/messages/payload.ts'
import { periodicScheduler } from '../lib/periodic-scheduler.ts'

interface EdgeRouterConnectorDeps {
  readonly certificate: Pick<IdentityCertificate, 'credential'>
  readonly version: VersionLine
  readonly names?: CachedResolver
  readonly circuits: EdgeCircuits
  readonly counts: Pick<TunnelCounts, 'routerDials' | 'lostRouters'>
  readonly clock: Clock
  readonly random: Random
  readonly log: ProgramLogger
  /**
   * Token of the API session; null while there is no session. Without a token, no edge router is
   * dialed.
   */
  readonly token: () => string | null
  readonly onOpen: (routerName: string) => void
  /** Called when an edge router has disconnected or cannot be reached. */
  readonly onLost: () => void
}

interface Followed {
  readonly name: string
  addresses: UsableEdgeRouter['addresses']
  open: EdgeChannel | null
  /**
   * Round trip of the last latency probe, ms; before the first response, the duration of the dial,
   * and before that Infinity.
   */
  roundTripMs: number
  attempts: number
  failures: number
  fault: string
  timer: NodeJS.Timeout | null
  giveUp: AbortController | null
}

const { helloMs, redialMsMin, redialMsMax, probedEveryMs, probeMs } = tunnelLimits

/**
 * Limits of channels to edge routers, which answer no heartbeats, only latency probes. Data has no
 * rate limit.
 */
const edgeChannelLimits = {
  ...channelLimits,
  heartbeatEveryMs: Infinity,
  silentMsMax: Infinity,
  firstSilentMsMax: Infinity,
  unmeteredTypes: circuitDataTypes,
}

/** Maintains a channel to each edge router that the identity may use. */
export class EdgeRouterConnector {
  readonly #deps: EdgeRouterConnectorDeps
  readonly #followed = new Map<string, Followed>()
  #stopProbes: (() => void) | null = null
  #isStopped = false

  constructor(deps: EdgeRouterConnectorDeps) {
    this.#deps = deps
  }

  /** Channels to connected edge routers, nearest first. */
  get open(): readonly EdgeChannel[] {
    return [...this.#followed.values()]
      .filter(({ open }) => open?.isOpen === true)
      .sort((one, other) => one.roundTripMs - other.roundTripMs)
      .flatMap(({ open }) => open ?? [])
  }

  /** All edge routers that the identity may use. */
  get figures(): readonly {
    readonly name: string
    readonly isConnected: boolean
    readonly roundTripMs: number
  }[] {
    return Array.from(this.#followed.values(), ({ name, open, roundTripMs }) => ({
      name,
      isConnected: open?.isOpen === true,
      roundTripMs,
    }))
  }

  /** `host:port` of all edge routers. */
  get addresses(): readonly string[] {
    return [...this.#followed.values()].flatMap(({ addresses }) => addresses.map(formatHostPort))
  }

  start(): void {
    this.#stopProbes = periodicScheduler.every(probedEveryMs, () => this.#probeAll())
  }

  follow(places: readonly UsableEdgeRouter[]): void {
    if (this.#isStopped) return
    const names = new Set(places.map(({ name }) => name))
    for (const [name, followed] of Array.from(this.#followed)) {
      if (!names.has(name)) this.#forget(followed, 'the identity may not use it any more')
    }
    for (const { name, addresses } of places) {
      const known = this.#followed.get(name)
      if (known === undefined) this.#add(name, addresses)
      else known.addresses = addresses
    }
  }

  /**
   * Called when a new session exists: closes the channels that use the token of the previous
   * session, and dials all edge routers.
   */
  renew(): void {
    for (const followed of this.#followed.values()) {
      followed.open?.channel.close('another session is open')
      followed.failures = 0
      this.#dialIn(followed, 0)
    }
  }

  stop(): void {
    this.#isStopped = true
    this.#stopProbes?.()
    for (const followed of Array.from(this.#followed.values())) {
      this.#forget(followed, 'the tunnel stops')
    }
  }

  #add(name: string, addresses: UsableEdgeRouter['addresses']): void {
    const followed: Followed = {
      name,
      addresses,
      open: null,
      roundTripMs: Infinity,
      attempts: 0,
      failures: 0,
      fault: '',
      timer: null,
      giveUp: null,
    }
    this.#followed.set(name, followed)
    this.#dialIn(followed, 0)
  }

  #forget(followed: Followed, reason: string): void {
    this.#followed.delete(followed.name)
    if (followed.timer !== null) clearTimeout(followed.timer)
    followed.timer = null
    followed.giveUp?.abort()
    followed.open?.channel.end(reason)
  }

  #isFollowed(followed: Followed): boolean {
    return !this.#isStopped && this.#followed.get(followed.name) === followed
  }

  #dialIn(followed: Followed, waitMs: number): void {
    if (!this.#isFollowed(followed)) return
    if (followed.timer !== null) clearTimeout(followed.timer)
    followed.timer = setTimeout(() => {
      followed.timer = null
      void this.#dial(followed)
    }, waitMs)
  }

  async #dial(followed: Followed): Promise<void> {
    const { token, counts } = this.#deps
    const shown = token()
    const isBusy = followed.giveUp !== null || followed.open?.isOpen === true
    // Does nothing without a session; when a session exists, `renew` dials the edge router.
    if (!this.#isFollowed(followed) || isBusy || shown === null) return
    const giveUp = new AbortController()
    followed.giveUp = giveUp
    try {
      await this.#open(followed, shown, giveUp.signal)
      counts.routerDials.add('success')
    } catch (error) {
      if (!giveUp.signal.aborted) counts.routerDials.add('failed')
      this.#onFailure(followed, errorMessage(error))
    } finally {
      followed.giveUp = null
    }
    // Closes a channel that was dialed with the previous session.
    if (followed.open?.isOpen === true && token() !== shown) {
      followed.open.channel.close('another session is open')
    }
  }

  async #open(followed: Followed, token: string, signal: AbortSignal): Promise<void> {
    const { certificate, version, names, circuits, clock, log, onOpen } = this.#deps
    const { credential } = certificate
    const { name, addresses } = followed
    const at = addresses[followed.attempts % addresses.length]
    followed.attempts += 1
    if (at === undefined) throw new Error('it has no address')
    let edge: EdgeChannel | null = null
    const startMs = clock.monotonicMs()
    const { channel } = await dialChannel({
      host: at.host,
      port: at.port,
      ...(names === undefined ? {} : { names }),
      tls: {
        ca: credential.caPem,
        cert: credential.certificatePem,
        key: credential.privateKeyPem,
      },
      protocol: EDGE_PROTOCOL,
      // Accepts every edge router: TLS has already verified its name with the network's CA.
      judge: () => null,
      hello: helloOf(token, version),
      limits: edgeChannelLimits,
      clock,
      timeoutMs: helloMs,
      signal,
      onMessage: (message) => {
        edge?.receive(message)
        return null
      },
      onClose: (reason) => {
        edge?.onClosed(reason)
        this.#onClosed(followed, edge, reason)
      },
    })
    edge = new EdgeChannel({ channel, routerName: name, circuits })
    if (!this.#isFollowed(followed)) {
      channel.close('the identity may not use it any more')
      return
    }
    followed.open = edge
    followed.failures = 0
    followed.fault = ''
    followed.roundTripMs = clock.monotonicMs() - startMs
    log.info({ router: name, address: formatHostPort(at) }, 'edge router connected')
    void this.#probe(followed, edge)
    onOpen(name)
  }

  #onClosed(followed: Followed, edge: EdgeChannel | null, reason: string): void {
    if (followed.open !== edge) return
    followed.open = null
    if (!this.#isFollowed(followed)) return
    this.#deps.counts.lostRouters += 1
    this.#deps.log.warn({ router: followed.name, reason }, 'edge router lost; dialing it again')
    this.#deps.onLost()
    this.#dialIn(followed, this.#waitAfter(followed))
  }

  #onFailure(followed: Followed, reason: string): void {
    if (!this.#isFollowed(followed)) return
    if (followed.fault !== reason) {
      const fields = { router: followed.name, reason }
      this.#deps.log.warn(fields, 'edge router not reached; trying again')
    }
    followed.fault = reason
    this.#deps.onLost()
    this.#dialIn(followed, this.#waitAfter(followed))
  }

  #waitAfter(followed: Followed): number {
    const waitMs = Math.min(redialMsMin * 2 ** Math.min(followed.failures, 16), redialMsMax)
    followed.failures += 1
    return waitMs / 2 + (this.#deps.random.next() * waitMs) / 2
  }

  #probeAll(): void {
    for (const followed of this.#followed.values()) {
      if (followed.open !== null) void this.#probe(followed, followed.open)
    }
  }

  /**
   * Probes the latency, and closes the channel if no response arrives. Because there are no
   * heartbeats, this probe detects an edge router that disappeared without closing the channel.
   */
  async #probe(followed: Followed, edge: EdgeChannel): Promise<void> {
    const { clock } = this.#deps
    const startMs = clock.monotonicMs()
    try {
      await edge.channel.request({ contentType: channelContentType.latency }, probeMs)
      followed.roundTripMs = clock.monotonicMs() - startMs
    } catch (error) {
      edge.channel.close(`no sign of life: ${errorMessage(error)}`)
    }
  }
}

function helloOf(token: string, version: VersionLine): ChannelMessage {
  return {
    contentType: channelContentType.hello,
    sequence: HELLO_SEQUENCE,
    headers: new Map([
      [channelHeaderKey.helloVersion, encodeText(formatVersionLine(version))],
      [edgeHeaderKey.sessionToken, encodeText(token)],
    ]),
    body: encodeText(randomUUID()),
  }
}
