import { errorMessage } from '../../lib/error-code.ts'
import type { ProgramLogger } from '../logger.ts'
import { DatagramListener, type DatagramListenerDeps } from '../sockets/datagram-listener.ts'
import { StreamListener, type StreamListenerDeps } from '../sockets/stream-listener.ts'
import type { TunnelProtocol } from '../services/host-config.ts'
import { type ListeningPlace, placeKey } from './listening-plan.ts'

interface InterceptListenersDeps {
  /** Options of all listeners, without their address. */
  readonly shared: Omit<StreamListenerDeps & DatagramListenerDeps, 'bind' | 'choose'>
  readonly choose: (
    protocol: TunnelProtocol,
    ...ends: Parameters<NonNullable<StreamListenerDeps['choose']>>
  ) => ReturnType<NonNullable<StreamListenerDeps['choose']>>
  readonly log: ProgramLogger
}

type Opened = StreamListener | DatagramListener

/** Listening ports for intercepted services. */
export class InterceptListeners {
  readonly #deps: InterceptListenersDeps
  readonly #open = new Map<string, Opened>()
  readonly #failed = new Map<string, string>()

  constructor(parts: InterceptListenersDeps) {
    this.#deps = parts
  }

  get count(): number {
    return this.#open.size
  }

  /** Opens and closes ports to match these; logs those that cannot be opened. */
  async set(wanted: ReadonlyMap<string, ListeningPlace>): Promise<void> {
    for (const key of this.#failed.keys()) if (!wanted.has(key)) this.#failed.delete(key)
    for (const [key, listener] of Array.from(this.#open)) {
      if (wanted.has(key)) continue
      this.#open.delete(key)
      // A listener on one address may be replaced by one on all addresses; its connections
      // continue.
      if (listener instanceof StreamListener) listener.release()
      else await listener.close()
    }
    for (const place of wanted.values()) await this.open(place)
  }

  async open(place: ListeningPlace): Promise<void> {
    const key = placeKey(place)
    if (this.#open.has(key)) return
    const listener = this.#listenerAt(place)
    try {
      await listener.listen()
      this.#open.set(key, listener)
      this.#failed.delete(key)
    } catch (error) {
      const reason = errorMessage(error)
      if (this.#failed.get(key) === reason) return
      this.#failed.set(key, reason)
      this.#deps.log.error({ ...place, reason }, 'port not intercepted')
    }
  }

  async stop(): Promise<void> {
    const all = [...this.#open.values()]
    this.#open.clear()
    await Promise.all(all.map((listener) => listener.close()))
  }

  #listenerAt({ protocol, family, address, port }: ListeningPlace): Opened {
    const { shared, choose } = this.#deps
    const host = address ?? (family === 'ipv4' ? '0.0.0.0' : '::')
    const parts: StreamListenerDeps & DatagramListenerDeps = {
      ...shared,
      bind: { protocol, host, port, text: `${protocol}:${host}:${port}` },
      choose: (ends) => choose(protocol, ends),
      ipv6Only: true,
    }
    return protocol === 'udp' ? new DatagramListener(parts) : new StreamListener(parts)
  }
}
