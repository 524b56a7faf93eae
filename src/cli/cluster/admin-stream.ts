import { connect } from 'node:net'

import { ownCaller } from '../../controller/admin/caller.ts'
import { PART_HEAD_BYTES, STREAM_PART_BYTES_MAX } from '../../controller/admin/stream.ts'
import type { AdminAnswer } from '../../controller/admin/protocol.ts'
import { addressOf, AdminError, connectError } from './admin-client.ts'

const LINE_BYTES_MAX = 1024 * 1024
const NEWLINE = 10

/**
 * Asks for an answer that comes in parts, and gives them as they come.
 * @param silenceMsMax between two pieces of it.
 * @returns what the controller says at the end.
 * @throws {AdminError}
 */
export async function* askForStream(
  dataFolder: string,
  verb: string,
  params: Readonly<Record<string, unknown>>,
  silenceMsMax = 60_000,
): AsyncGenerator<Uint8Array, unknown> {
  const address = addressOf(dataFolder)
  const socket = connect(address.path)
  let cause: unknown = null
  socket.on('error', (error) => {
    cause = error
  })
  socket.setTimeout(silenceMsMax, () => {
    const message = `no data from the controller for ${silenceMsMax} ms`
    socket.destroy(new AdminError('NO_ANSWER', message))
  })
  try {
    socket.write(`${JSON.stringify({ verb, params, caller: ownCaller() })}\n`)
    const bytes = new ByteReader(socket)
    dataOf(await bytes.line())
    for (;;) {
      const length = (await bytes.take(PART_HEAD_BYTES)).readUInt32LE()
      if (length === 0) break
      if (length > STREAM_PART_BYTES_MAX) throw new AdminError('NO_ANSWER', 'a part is too large')
      yield await bytes.take(length)
    }
    return dataOf(await bytes.line())
  } catch (error) {
    if (error instanceof AdminError) throw error
    throw connectError(cause ?? error, dataFolder)
  } finally {
    socket.destroy()
    address.release()
  }
}

function dataOf(line: string): unknown {
  const answer = JSON.parse(line) as AdminAnswer
  if (answer.ok) return answer.data
  throw new AdminError(answer.code, answer.message)
}

/** Cuts what comes into lines and parts; waits for no more than is asked for. */
class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>
  #held: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  async line(): Promise<string> {
    const pieces: Buffer[] = []
    for (let bytes = 0; ;) {
      const at = this.#held.indexOf(NEWLINE)
      if (at >= 0) {
        pieces.push(this.#held.subarray(0, at))
        this.#held = this.#held.subarray(at + 1)
        return Buffer.concat(pieces).toString('utf8')
      }
      bytes += this.#held.length
      if (bytes > LINE_BYTES_MAX) throw new AdminError('NO_ANSWER', 'an answer is too long')
      pieces.push(this.#held)
      this.#held = await this.#next()
    }
  }

  async take(length: number): Promise<Buffer> {
    const pieces: Buffer[] = []
    let missing = length
    while (missing > this.#held.length) {
      pieces.push(this.#held)
      missing -= this.#held.length
      this.#held = await this.#next()
    }
    pieces.push(this.#held.subarray(0, missing))
    this.#held = this.#held.subarray(missing)
    return pieces.length === 1 ? (pieces[0] ?? Buffer.alloc(0)) : Buffer.concat(pieces)
  }

  async #next(): Promise<Buffer> {
    const { done, value } = await this.#chunks.next()
    if (done !== true) return value
    throw new AdminError('NO_ANSWER', 'the controller closed the connection before the end')
  }
}
