import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { FairShare } from '../../lib/fair-share.ts'
import type { ApiLimits } from '../limits.ts'

type UnsentLimits = Pick<
  ApiLimits,
  'answerPieceBytes' | 'answerStallMs' | 'answerBytesPerSecondMin' | 'unsentBytesMax'
>

/**
 * A body: text that was made for one answer, bytes that many answers share, or the parts of a long
 * one made for one answer.
 */
export type Body = string | Buffer | readonly Buffer[]

export function byteLengthOf(body: Body): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  return isShared(body) ? body.length : body.reduce((sum, part) => sum + part.length, 0)
}

function isShared(body: Body): body is Buffer {
  return Buffer.isBuffer(body)
}

/** The answers of one connection that its client has not read yet. */
interface Unread {
  count: number
  readonly stalled: NodeJS.Timeout
}

/**
 * Sends the bodies of answers no faster than their clients read them. A body that is larger than a
 * piece goes out piece by piece, so that TLS never holds an encrypted copy of all of it; what is
 * not sent yet counts against its source; and a client that stops reading, or reads too slowly,
 * loses its connection.
 */
export class UnsentAnswers {
  readonly #limits: UnsentLimits
  readonly #unsent: FairShare
  readonly #unread = new WeakMap<Socket, Unread>()

  constructor(limits: UnsentLimits) {
    this.#limits = limits
    this.#unsent = new FairShare(limits.unsentBytesMax)
  }

  /**
   * Whether the source may be owed an answer of so many bytes; asked before its head is written.
   */
  hasRoomFor(source: string, bytes: number): boolean {
    return bytes <= this.#limits.answerPieceBytes || this.#unsent.hasRoomFor(source)
  }

  /**
   * Writes the body. The head of the response has been written.
   * @param end writes the last piece, or the only one, and ends the response.
   */
  send(
    response: ServerResponse,
    source: string,
    body: Body,
    byteLength: number,
    end: (piece: string | Buffer, encoding: BufferEncoding) => void,
  ): void {
    if (byteLength > this.#limits.answerPieceBytes) {
      this.#sendInPieces(response, source, body, end)
      return
    }
    if (typeof body === 'string') {
      // Plain ASCII, as nearly every answer is, goes out as it lies in memory.
      end(body, byteLength === body.length ? 'latin1' : 'utf8')
    } else {
      end(isShared(body) ? body : Buffer.concat(body), 'latin1')
    }
    if (isBackedUp(response, this.#limits.answerPieceBytes)) {
      this.#hold(response, source, byteLength, byteLength)
    }
  }

  #sendInPieces(
    response: ServerResponse,
    source: string,
    body: Body,
    endWith: (piece: Buffer, encoding: BufferEncoding) => void,
  ): void {
    const { answerPieceBytes } = this.#limits
    const parts = isShared(body) ? [body] : typeof body === 'string' ? [Buffer.from(body)] : body
    const totalBytes = byteLengthOf(body)
    const heldBytes = isShared(body) ? answerPieceBytes : totalBytes
    const progressed = this.#hold(response, source, heldBytes, totalBytes)
    const pieces = piecesOf(parts, answerPieceBytes)
    let left = totalBytes
    const sendMore = (): void => {
      for (let next = pieces.next(); next.done !== true; next = pieces.next()) {
        const piece = next.value
        left -= piece.length
        if (left === 0) {
          endWith(piece, 'latin1')
          return
        }
        if (response.write(piece)) continue
        response.once('drain', () => {
          progressed()
          sendMore()
        })
        return
      }
    }
    sendMore()
  }

  /**
   * Counts the bytes against the source until the response is sent or its connection is gone, and
   * ends the connection when nothing of its answers moves for `answerStallMs`, or this one takes
   * longer than `answerBytesPerSecondMin` allows.
   * @returns what is to be called when the client has read some.
   */
  #hold(
    response: ServerResponse,
    source: string,
    heldBytes: number,
    totalBytes: number,
  ): () => void {
    const { answerStallMs, answerBytesPerSecondMin } = this.#limits
    this.#unsent.take(source, heldBytes)
    // `response.socket` is null while earlier answers of a pipelined connection are being sent.
    const { socket } = response.req
    const unread = this.#unreadOf(socket)
    const tooSlow = setTimeout(
      () => socket.destroy(),
      answerStallMs + (totalBytes * 1000) / answerBytesPerSecondMin,
    )
    unread.count += 1
    response.once('close', () => {
      clearTimeout(tooSlow)
      this.#unsent.giveBack(source, heldBytes)
      unread.count -= 1
      if (unread.count > 0) {
        unread.stalled.refresh()
        return
      }
      clearTimeout(unread.stalled)
      this.#unread.delete(socket)
    })
    return () => unread.stalled.refresh()
  }

  #unreadOf(socket: Socket): Unread {
    const known = this.#unread.get(socket)
    if (known !== undefined) return known
    const stalled = setTimeout(() => socket.destroy(), this.#limits.answerStallMs)
    const unread = { count: 0, stalled }
    this.#unread.set(socket, unread)
    return unread
  }
}

/** Views of the parts, none larger than a piece. */
function* piecesOf(parts: readonly Buffer[], pieceBytes: number): Generator<Buffer, void> {
  for (const part of parts) {
    for (let at = 0; at < part.length; at += pieceBytes) yield part.subarray(at, at + pieceBytes)
  }
}

/**
 * Whether a client that reads would have taken more by now, or earlier answers stand before this
 * one.
 */
function isBackedUp({ socket, writableFinished }: ServerResponse, bytesMax: number): boolean {
  return !writableFinished && (socket === null || socket.writableLength >= bytesMax)
}
