import type { TLSSocket } from 'node:tls'
import type { Context } from '../virtual-loop.ts'

/** A process at one end of a socket: its name and its context in the loop. */
export interface Party {
  readonly name: string
  readonly context: Context
}

type Listener = (chunk: Uint8Array) => void

const WAITING_BYTES_MAX = 64 * 1024
const none = new Uint8Array(0)

/** Functions that a socket needs from the simulated wires. */
export interface SocketWire {
  carry(from: SimulatedSocket, bytes: Uint8Array): void
  end(from: SimulatedSocket): void
  destroy(from: SimulatedSocket): void
  /** Runs the task in a later event of the socket's process. */
  soon(socket: SimulatedSocket, task: () => void): void
}

/**
 * One end of a connection for the channel: ordered and complete until it breaks, with back pressure
 * when the other end does not read. It simulates TCP with TLS; it gives the identity of its peer as
 * a certificate would.
 */
export class SimulatedSocket {
  readonly owner: Party
  readonly peer: Party
  readonly remotePort = 1
  readonly localPort = 1
  writableLength = 0
  writableNeedDrain = false
  isDestroyed = false
  readonly #wire: SocketWire
  readonly #listeners = new Map<string, Listener[]>()
  readonly #written: (() => void)[] = []
  #arrived: { readonly bytes: Uint8Array; readonly onRead: () => void }[] = []
  #isPaused = false
  #isReadDue = false

  constructor(wire: SocketWire, owner: Party, peer: Party) {
    this.#wire = wire
    this.owner = owner
    this.peer = peer
  }

  get remoteAddress(): string {
    return this.peer.name
  }

  get localAddress(): string {
    return this.owner.name
  }

  /** The socket type that channel and listeners expect. */
  get asSocket(): TLSSocket {
    return this as unknown as TLSSocket
  }

  on(event: string, listener: Listener): this {
    const listeners = this.#listeners.get(event)
    if (listeners === undefined) this.#listeners.set(event, [listener])
    else listeners.push(listener)
    return this
  }

  once(event: string, listener: Listener): this {
    // Events with `once` listeners occur only once.
    return this.on(event, listener)
  }

  write(bytes: Uint8Array, onWritten?: () => void): boolean {
    if (this.isDestroyed) return false
    this.writableLength += bytes.length
    this.writableNeedDrain ||= this.writableLength > WAITING_BYTES_MAX
    if (onWritten !== undefined && !this.#written.includes(onWritten)) this.#written.push(onWritten)
    // The data is copied, because the sender may use its buffer again.
    this.#wire.carry(this, Uint8Array.from(bytes))
    return !this.writableNeedDrain
  }

  cork(): void {
    // Frames are sent one by one.
  }

  uncork(): void {
    // Frames are sent one by one.
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#readSoon()
  }

  end(): void {
    this.#wire.end(this)
  }

  destroy(): void {
    if (this.isDestroyed) return
    this.isDestroyed = true
    this.#arrived = []
    this.#wire.destroy(this)
  }

  /**
   * Receives bytes from the other end, as an event of this process.
   * @param onRead called when the bytes are read.
   */
  arrive(bytes: Uint8Array, onRead: () => void): void {
    if (this.isDestroyed) return
    this.#arrived.push({ bytes, onRead })
    this.#read()
  }

  /** Reports that this many bytes were sent. */
  gone(bytes: number): void {
    if (this.isDestroyed) return
    this.writableLength -= bytes
    if (this.writableLength > 0) return
    for (const onWritten of this.#written.splice(0)) onWritten()
    if (!this.writableNeedDrain) return
    this.writableNeedDrain = false
    this.#emit('drain', none)
  }

  /** The other end closed, or finished writing. */
  over(event: 'end' | 'close'): void {
    if (!this.isDestroyed) this.#emit(event, none)
  }

  #readSoon(): void {
    if (this.#isReadDue || this.#arrived.length === 0) return
    this.#isReadDue = true
    this.#wire.soon(this, () => {
      this.#isReadDue = false
      this.#read()
    })
  }

  #read(): void {
    while (!this.#isPaused && !this.isDestroyed) {
      const next = this.#arrived.shift()
      if (next === undefined) return
      next.onRead()
      this.#emit('data', next.bytes)
    }
  }

  #emit(event: string, chunk: Uint8Array): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(chunk)
  }
}
