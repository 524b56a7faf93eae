import { once } from 'node:events'
import { createServer, get, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

import { pause, until } from '../process/support/client.ts'

const EVERY_MS = 250
const ANSWER_WITHIN_MS = 3000
/** Number of answers in a row that count as steady traffic. */
const STEADY = 8

/** An HTTP server on this host. `/stream` sends bytes continuously, every other path one answer. */
export async function startWebServer(): Promise<{
  readonly server: Server
  readonly port: number
}> {
  const server = createServer((request, response) => {
    if (request.url !== '/stream') {
      response.end('a page')
      return
    }
    const timer = setInterval(() => response.write('.'), EVERY_MS)
    response.on('close', () => clearInterval(timer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port }
}

/**
 * Requests a page repeatedly, each time over a new connection, so that each request uses a new
 * circuit.
 */
export class Traffic {
  readonly name: string
  readonly #port: number
  readonly #answeredAtMs: number[] = []
  #failures: string[] = []
  /** The number of answers since the last failure. */
  #inRow = 0
  #isEnded = false

  constructor(name: string, port: number) {
    this.name = name
    this.#port = port
    void this.#run()
  }

  end(): void {
    this.#isEnded = true
  }

  /** @returns when the first answer of a series of successful answers after `sinceMs` arrived. */
  async back(sinceMs: number): Promise<number> {
    return await until(`traffic of ${this.name}`, () => {
      const first = this.#answeredAtMs.at(-Math.min(this.#inRow, this.#countSince(sinceMs)))
      const isSteady = this.#inRow >= STEADY && this.#countSince(sinceMs) >= STEADY
      return Promise.resolve(isSteady ? first : null)
    })
  }

  /** Longest time between two answers since `sinceMs`. */
  longestGapMs(sinceMs: number): number {
    const from = this.#answeredAtMs.findLast((atMs) => atMs < sinceMs) ?? sinceMs
    const times = [from, ...this.#answeredAtMs.filter((atMs) => atMs >= sinceMs)]
    const gaps = times.slice(1).map((atMs, at) => atMs - (times[at] ?? atMs))
    return Math.max(0, ...gaps)
  }

  /** Failed requests since the last call. */
  takeFailures(): readonly string[] {
    const taken = this.#failures
    this.#failures = []
    return taken
  }

  #countSince(sinceMs: number): number {
    return this.#answeredAtMs.filter((atMs) => atMs >= sinceMs).length
  }

  async #run(): Promise<void> {
    while (!this.#isEnded) {
      const failure = await this.#request()
      if (failure === null) {
        this.#answeredAtMs.push(performance.now())
        this.#inRow += 1
      } else {
        this.#failures.push(failure)
        this.#inRow = 0
      }
      await pause(EVERY_MS)
    }
  }

  /** @returns the reason why no answer arrived; null if one did. */
  #request(): Promise<string | null> {
    return new Promise((done) => {
      const request = get({ host: '127.0.0.1', port: this.#port, agent: false }, (response) => {
        response.on('error', (error) => done(error.message))
        response.resume().on('end', () => done(response.statusCode === 200 ? null : 'no page'))
      })
      request.setTimeout(ANSWER_WITHIN_MS, () => request.destroy(new Error('timed out')))
      request.on('error', (error) => done(error.message))
    })
  }
}

/** One connection that receives bytes continuously. */
export class Stream {
  #receivedAtMs = performance.now()
  #longestGapMs = 0
  #isOpen = true

  constructor(port: number) {
    const request = get({ host: '127.0.0.1', port, path: '/stream', agent: false }, (response) => {
      response.on('data', () => {
        const nowMs = performance.now()
        this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - this.#receivedAtMs)
        this.#receivedAtMs = nowMs
      })
      response.on('error', () => undefined)
      response.on('close', () => (this.#isOpen = false))
    })
    request.on('error', () => (this.#isOpen = false))
  }

  get text(): string {
    const gap = `longest gap ${(this.#longestGapMs / 1000).toFixed(1)} s`
    return this.#isOpen ? `open, ${gap}` : `closed, ${gap}`
  }

  get isOpen(): boolean {
    return this.#isOpen
  }
}
