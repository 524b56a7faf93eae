import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'

import { Problem } from '../../lib/problems.ts'
import type { Actor } from '../../ports/actor.ts'
import { actorAt, ownCaller } from './caller.ts'
import { ADMIN_REQUEST_BYTES_MAX, adminSocketAddress, LineSplitter } from './protocol.ts'
import type { AdminAnswer, SocketAddress } from './protocol.ts'
import { AdminStream, partHead, sendParts, STREAM_BEGINS } from './stream.ts'

const CONNECTIONS_MAX = 32
const IDLE_MS_MAX = 60_000
/** Requests of one connection that wait for their turn; a client that sends more without reading is cut off. */
const WAITING_MAX = 64

/** What one verb does, and for whom; the answer may be an `AdminStream`. @throws {Problem} a refusal, told to the caller with its code. */
export type AdminVerb = (params: Readonly<Record<string, unknown>>, by: Actor) => Promise<unknown>
export type AdminVerbs = Readonly<Record<string, AdminVerb>>

/** Serves a table of verbs on the admin socket of a data folder. */
export class AdminServer {
  readonly #verbs: AdminVerbs
  readonly #onError: (verb: string, error: unknown) => void
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #own = ownCaller()
  #address: SocketAddress | null = null

  /** @param onError told of everything a verb throws that is no Problem. */
  constructor(verbs: AdminVerbs, onError: (verb: string, error: unknown) => void) {
    this.#verbs = verbs
    this.#onError = onError
    this.#server = createServer((socket) => this.#accept(socket))
    this.#server.maxConnections = CONNECTIONS_MAX
  }

  /**
   * The caller must own the data folder (hold its lock): a socket left by a process that was killed is removed.
   * @throws the error of listening.
   */
  async listen(dataFolder: string): Promise<void> {
    const address = adminSocketAddress(dataFolder)
    this.#address = address
    removeSocket(address.path)
    // Bound under a narrow mask, so that nobody else can connect even before the mode is set.
    const umask = process.umask(0o177)
    try {
      await new Promise<void>((resolve, reject) => {
        this.#server.once('error', reject)
        this.#server.listen(address.path, resolve)
        process.umask(umask)
      })
      chmodSync(address.path, 0o600)
    } catch (error) {
      address.release()
      this.#address = null
      throw error
    } finally {
      process.umask(umask)
    }
  }

  async close(): Promise<void> {
    if (this.#address === null) return
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const socket of this.#sockets) socket.destroy()
    await closed
    this.#address.release()
    this.#address = null
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket)
    const lines = new LineSplitter(ADMIN_REQUEST_BYTES_MAX)
    // One after the other, so that answers come in the order of the requests.
    let last = Promise.resolve()
    let waiting = 0
    socket.setTimeout(IDLE_MS_MAX, () => socket.destroy())
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: Buffer) => {
      try {
        for (const line of lines.push(chunk)) {
          waiting += 1
          if (waiting > WAITING_MAX) throw new RangeError('too many requests at a time')
          last = last.then(async () => {
            const answer = await this.#answer(line, socket)
            waiting -= 1
            if (!socket.destroyed) socket.write(`${JSON.stringify(answer)}\n`)
          })
        }
      } catch (error) {
        // Nothing after it is read as a request; what still comes is thrown away until the client has gone.
        socket.removeAllListeners('data').resume()
        socket.end(`${JSON.stringify(badRequest(error))}\n`)
      }
    })
  }

  async #answer(line: string, socket: Socket): Promise<AdminAnswer> {
    let request: unknown
    try {
      request = JSON.parse(line)
    } catch (error) {
      return badRequest(error)
    }
    const { verb, params, caller } = { ...(request as Partial<Record<string, unknown>> | null) }
    if (typeof verb !== 'string' || !isParams(params)) {
      return badRequest(new TypeError('expected {"verb": string, "params": object}'))
    }
    const run = Object.hasOwn(this.#verbs, verb) ? this.#verbs[verb] : undefined
    if (run === undefined) {
      const known = Object.keys(this.#verbs).join(', ')
      return { ok: false, code: 'UNKNOWN_VERB', message: `unknown verb; expected one of ${known}` }
    }
    try {
      const data = await run(params, actorAt(caller, this.#own))
      return {
        ok: true,
        data: (data instanceof AdminStream ? await send(data, socket) : data) ?? null,
      }
    } catch (error) {
      if (error instanceof Problem) {
        return { ok: false, code: error.code, message: sentenceOf(error) }
      }
      this.#onError(verb, error)
      return { ok: false, code: 'UNHANDLED', message: String(error) }
    }
  }
}

/** Sends the parts; the answer follows them, whether or not all could be made. */
async function send(stream: AdminStream, socket: Socket): Promise<unknown> {
  socket.write(`${JSON.stringify({ ok: true, data: STREAM_BEGINS })}\n`)
  try {
    await sendParts(socket, stream.chunks)
  } finally {
    if (!socket.destroyed) socket.write(partHead(0))
  }
  return stream.result()
}

/** What is wrong with a field says more than that something is. */
function sentenceOf({ fault, message }: Problem): string {
  return fault === null ? message : `${fault.field}: ${fault.reason}`
}

function isParams(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function badRequest(error: unknown): AdminAnswer {
  const message = error instanceof Error ? error.message : String(error)
  return { ok: false, code: 'BAD_REQUEST', message }
}

function removeSocket(path: string): void {
  const status = lstatSync(path, { throwIfNoEntry: false })
  if (status?.isSocket() === true) unlinkSync(path)
}
