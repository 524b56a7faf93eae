import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

import { until } from './client.ts'

const WORD_EVERY_MS = 100
const AT_ONCE = 10
const WORD = /(\d+)\n/g

/** Reads numbers that increase by one, each on a separate line. */
class WordReader {
  next = 0
  /** The count of words that arrived again. */
  doubled = 0
  lost = 0
  #rest = ''

  /** @returns whether the chunk completed a word. */
  read(chunk: Buffer): boolean {
    const text = this.#rest + chunk.toString('latin1')
    const end = text.lastIndexOf('\n') + 1
    this.#rest = text.slice(end)
    for (const [, digits] of text.slice(0, end).matchAll(WORD)) {
      const number = Number(digits)
      if (number < this.next) this.doubled += 1
      else this.lost += number - this.next
      this.next = Math.max(this.next, number + 1)
    }
    return end > 0
  }
}

/** When and how one side of a stream ended. */
export interface StreamEnd {
  readonly atMs: number
  /** The stream ended by a reset or another error, not by an orderly close. */
  readonly isReset: boolean
}

/** One client connection, which sends numbered words; the server sends each word back. */
export class WordStream {
  readonly socket: Socket
  readonly back = new WordReader()
  sent = 0
  lastMs = performance.now()
  longestSilenceMs = 0
  end: StreamEnd | null = null
  /** Whether the client has sent all its words. */
  isFinished = false
  #isReset = false

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
    this.socket.on('end', () => this.socket.end())
    this.socket.on('data', (chunk) => {
      if (this.back.read(chunk)) this.#hear()
    })
    this.socket.on('error', () => (this.#isReset = true))
    this.socket.on('close', () => {
      this.end = { atMs: performance.now(), isReset: this.#isReset }
    })
  }

  #hear(): void {
    const nowMs = performance.now()
    this.longestSilenceMs = Math.max(this.longestSilenceMs, nowMs - this.lastMs)
    this.lastMs = nowMs
  }

  get isOpen(): boolean {
    return this.end === null
  }

  /** The longest time without a received word so far, including the current one. */
  get silenceMs(): number {
    return Math.max(this.longestSilenceMs, performance.now() - this.lastMs)
  }

  say(): void {
    if (!this.socket.writable) return
    this.socket.write(`${this.sent}\n`)
    this.sent += 1
  }

  finish(): void {
    this.isFinished = true
    this.socket.end()
  }

  forgetSilence(): void {
    this.lastMs = performance.now()
    this.longestSilenceMs = 0
  }
}

/** A server that sends each word back, and checks which words have arrived. */
export class WordServer {
  readonly ends: StreamEnd[] = []
  /** Keeps finished clients running: the server sends them lines without a word. */
  isHolding = false
  readonly #held = new Set<Socket>()
  readonly #timer = setInterval(() => {
    for (const socket of this.#held) socket.write('\n')
  }, WORD_EVERY_MS)
  readonly #readers: WordReader[] = []
  readonly #sockets = new Set<Socket>()
  readonly #server: Server

  constructor() {
    this.#server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
      const reader = new WordReader()
      let isReset = false
      this.#readers.push(reader)
      this.#sockets.add(socket)
      socket.on('data', (chunk) => {
        reader.read(chunk)
        socket.write(chunk)
      })
      socket.on('end', () => {
        if (this.isHolding) this.#held.add(socket)
        else socket.end()
      })
      socket.on('error', () => (isReset = true))
      socket.on('close', () => {
        this.#sockets.delete(socket)
        this.#held.delete(socket)
        this.ends.push({ isReset, atMs: performance.now() })
      })
    })
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  get faults(): number {
    return this.#readers.reduce((sum, { lost, doubled }) => sum + lost + doubled, 0)
  }

  close(): void {
    clearInterval(this.#timer)
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }
}

/** Streams that all send at the same rate. */
export class WordStreams {
  readonly all: WordStream[] = []
  #timer: NodeJS.Timeout | null = null

  get living(): readonly WordStream[] {
    return this.all.filter(({ isOpen }) => isOpen)
  }

  get speaking(): readonly WordStream[] {
    return this.living.filter(({ isFinished }) => !isFinished)
  }

  /** The longest time in ms during which an active stream has received nothing. */
  get silenceMs(): number {
    return Math.round(Math.max(0, ...this.speaking.map((stream) => stream.silenceMs)))
  }

  /** Words that the clients of running streams did not receive, or received twice. */
  get faults(): { readonly lost: number; readonly doubled: number } {
    const sum = (of: 'lost' | 'doubled'): number =>
      this.living.reduce((total, { back }) => total + back[of], 0)
    return { lost: sum('lost'), doubled: sum('doubled') }
  }

  /** Opens this number of streams, and waits until each has received a word. */
  async open(count: number, port: number): Promise<readonly WordStream[]> {
    const opened: WordStream[] = []
    while (opened.length < count) {
      const length = Math.min(AT_ONCE, count - opened.length)
      const some = Array.from({ length }, () => new WordStream(port))
      for (const stream of some) stream.say()
      await until('a word comes back on each stream', () =>
        Promise.resolve(some.every(({ isOpen, back }) => isOpen && back.next > 0)),
      )
      opened.push(...some)
    }
    this.all.push(...opened)
    this.#timer ??= setInterval(() => {
      for (const stream of this.speaking) stream.say()
    }, WORD_EVERY_MS)
    this.forgetSilence()
    return opened
  }

  forgetSilence(): void {
    for (const stream of this.all) stream.forgetSilence()
  }

  /**
   * Resolves when each active stream has ended or has received back all words that it sent before
   * this call.
   */
  async settled(): Promise<void> {
    const sent = new Map(this.speaking.map((stream) => [stream, stream.sent]))
    await until('every word comes back', () => {
      const missing = Array.from(sent).filter(([{ isOpen, back }, to]) => isOpen && back.next < to)
      if (missing.length === 0) return Promise.resolve(true)
      throw new Error(`${missing.length} streams wait`)
    })
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    for (const { socket } of this.all) socket.destroy()
  }
}
