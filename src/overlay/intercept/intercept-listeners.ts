import { errorMessage } from '../../lib/error-code.ts'
import type { ProgramLogger } from '../logger.ts'
import { DatagramListener, type DatagramListenerDeps } from '../sockets/datagram-listener.ts'
import { StreamListener, type StreamListenerDeps } from '../sockets/stream-listener.ts'
import type { TunnelProtocol } from '../services/host-config.ts'
import {
  type ListeningPort,
  type ListeningPlan,
  listeningPortKey,
  type RedirectedPorts,
} from './listening-plan.ts'
import {
  DATAGRAM_LISTENER_HOST,
  PortRedirector,
  redirectedPort,
  type RunNftScript,
} from './port-redirector.ts'

interface InterceptListenersDeps {
  /** Options of all listeners, without their address. */
  readonly shared: Omit<StreamListenerDeps & DatagramListenerDeps, 'bind' | 'choose'>
  readonly choose: (
    protocol: TunnelProtocol,
    ...ends: Parameters<NonNullable<StreamListenerDeps['choose']>>
  ) => ReturnType<NonNullable<StreamListenerDeps['choose']>>
  readonly log: ProgramLogger
  /** Identifies the rules and routes of this tunnel on its host. */
  readonly owner: string
  readonly runNft: RunNftScript
}

type Opened = StreamListener | DatagramListener
/** Key under which failures to change the redirection rules of the host are logged. */
const REDIRECTS = 'redirects'
type Choose = NonNullable<StreamListenerDeps['choose']>

/** Listening ports for the connections that a tunnel intercepts. */
export class InterceptListeners {
  readonly #deps: InterceptListenersDeps
  readonly #open = new Map<string, Opened>()
  readonly #failed = new Map<string, string>()
  readonly #redirects: PortRedirector
  /** Listeners to which the rules of the host redirect other ports. */
  readonly #redirected = new Map<string, { place: RedirectedPorts; readonly listener: Opened }>()

  constructor(parts: InterceptListenersDeps) {
    this.#deps = parts
    const { owner, runNft, log } = parts
    this.#redirects = new PortRedirector({ owner, run: runNft, log })
  }

  get count(): number {
    return this.#open.size + this.#redirected.size
  }

  /**
   * Removes rules that an earlier process left behind. @returns why this host cannot redirect
   * ports; null if it can.
   */
  async start(): Promise<string | null> {
    return await this.#redirects.start()
  }

  /** Opens and closes ports as the plan requires; logs ports that cannot be opened. */
  async set(plan: ListeningPlan): Promise<void> {
    const wanted = plan.places
    const isWanted = (key: string): boolean =>
      wanted.has(key) || plan.redirected.has(key) || key === REDIRECTS
    for (const key of this.#failed.keys()) if (!isWanted(key)) this.#failed.delete(key)
    for (const [key, listener] of Array.from(this.#open)) {
      if (wanted.has(key)) continue
      this.#open.delete(key)
      await release(listener)
    }
    for (const [key, { listener }] of Array.from(this.#redirected)) {
      if (plan.redirected.has(key)) continue
      this.#redirected.delete(key)
      await release(listener)
    }
    await this.open(plan)
  }

  /** Opens the ports of the plan, and closes none. */
  async open(plan: ListeningPlan): Promise<void> {
    for (const place of plan.places.values()) await this.#openPlace(place)
    for (const [key, place] of plan.redirected) await this.#openRedirected(key, place)
    await this.#redirect()
  }

  async #openRedirected(key: string, place: RedirectedPorts): Promise<void> {
    const known = this.#redirected.get(key)
    if (known !== undefined) {
      known.place = place
      return
    }
    const { protocol, address } = place
    const { choose } = this.#deps
    const host = protocol === 'udp' ? DATAGRAM_LISTENER_HOST : '0.0.0.0'
    const listener = this.#listener({ protocol, host, port: 0 }, (ends) => {
      const port = redirectedPort(protocol === 'udp' ? ends.remoteAddress : ends.localAddress)
      // @guard addresses-a-service-takes--unredirected
      if (port === null) return null
      const original = { ...ends, localAddress: address.text, localPort: port }
      // Only connections from this host are redirected. For UDP, the source address of a program
      // equals the address to which it connects.
      const source = protocol === 'udp' ? { remoteAddress: address.text } : {}
      return choose(protocol, { ...original, ...source })
    })
    try {
      await listener.listen()
      this.#redirected.set(key, { place, listener })
      this.#failed.delete(key)
    } catch (error) {
      this.#fail(key, { protocol, address: address.text }, error)
    }
  }

  async #redirect(): Promise<void> {
    const all = [...this.#redirected.values()].map(({ place, listener: { port } }) => ({
      place,
      port,
    }))
    try {
      await this.#redirects.set(all)
      this.#failed.delete(REDIRECTS)
    } catch (error) {
      this.#fail(REDIRECTS, { addresses: all.map(({ place }) => place.address.text) }, error)
    }
  }

  async #openPlace(place: ListeningPort): Promise<void> {
    const key = listeningPortKey(place)
    if (this.#open.has(key)) return
    const listener = this.#listenerAt(place)
    try {
      await listener.listen()
      this.#open.set(key, listener)
      this.#failed.delete(key)
    } catch (error) {
      this.#fail(key, { ...place }, error)
    }
  }

  #fail(key: string, fields: Readonly<Record<string, unknown>>, error: unknown): void {
    const reason = errorMessage(error)
    if (this.#failed.get(key) === reason) return
    this.#failed.set(key, reason)
    this.#deps.log.error({ ...fields, reason }, 'port not intercepted')
  }

  async stop(): Promise<void> {
    const redirected = [...this.#redirected.values()].map(({ listener }) => listener)
    const all = [...this.#open.values(), ...redirected]
    this.#open.clear()
    this.#redirected.clear()
    await this.#redirects.stop()
    await Promise.all(all.map((listener) => listener.close()))
  }

  #listenerAt({ protocol, family, address, port }: ListeningPort): Opened {
    const { choose } = this.#deps
    const host = address ?? (family === 'ipv4' ? '0.0.0.0' : '::')
    return this.#listener({ protocol, host, port }, (ends) => choose(protocol, ends))
  }

  #listener(
    { protocol, host, port }: Pick<StreamListenerDeps['bind'], 'protocol' | 'host' | 'port'>,
    choose: Choose,
  ): Opened {
    const { shared } = this.#deps
    const parts: StreamListenerDeps & DatagramListenerDeps = {
      ...shared,
      bind: { protocol, host, port, text: `${protocol}:${host}:${port}` },
      choose,
      ipv6Only: true,
    }
    return protocol === 'udp' ? new DatagramListener(parts) : new StreamListener(parts)
  }
}

/**
 * Closes a listener. A stream listener keeps its connections, because a listener on all addresses
 * may replace it.
 */
async function release(listener: Opened): Promise<void> {
  if (listener instanceof StreamListener) listener.release()
  else await listener.close()
}
