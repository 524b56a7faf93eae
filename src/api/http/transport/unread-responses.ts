import type { ServerResponse } from 'node:http'
import { systemClock } from '../../../lib/clock.ts'
import { FairShare } from '../../../lib/bounds/fair-share.ts'
import { LinkedList, type ListLinks } from '../../../lib/linked-list.ts'
import { Problem } from '../../../lib/problems.ts'
import type { ApiLimits } from '../../limits.ts'

type UnsentLimits = Pick<
  ApiLimits,
  | 'answerPieceBytes'
  | 'answerStallMs'
  | 'answerQuietMs'
  | 'answerBytesPerSecondMin'
  | 'unsentBytesMax'
  | 'timeoutCheckMs'
>

/**
 * Responses up to this size, such as errors, are always sent, because a connection has at most one
 * unsent response.
 */
const SMALL_BYTES = 4096
/** Approximate memory of a request that waits for the response to an earlier request. */
const WAITING_REQUEST_BYTES = 8192
/**
 * Minimum polls without progress before a connection may be closed to free memory. A single poll
 * does not show how much a client has read; two polls do.
 */
const LOOKS_MIN = 2

/**
 * A response body: text for one response, bytes that many responses share, or the buffers of a long
 * body for one response.
 */
export type ReplyBody = string | Buffer | readonly Buffer[]

export function bodyByteLength(body: ReplyBody): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  return isShared(body) ? body.length : body.reduce((sum, part) => sum + part.length, 0)
}

function isShared(body: ReplyBody): body is Buffer {
  return Buffer.isBuffer(body)
}

/** A response that the client has not read completely. */
interface Unread extends ListLinks<Unread> {
  readonly response: ServerResponse
  readonly source: string
  readonly bytes: number
  /** Deadline for reading the whole response, monotonic ms. */
  readonly dueMs: number
  /** Time at which the client last read a part of the response, monotonic ms. */
  movedMs: number
  /**
   * Number of polls since the last progress. The time since then is not enough: a controller that
   * is delayed itself does not poll.
   */
  looks: number
}

/**
 * Sends the bodies of responses no faster than clients read them, and limits the memory for the
 * bodies, for the copies that Node.js and TLS hold until the system accepts them, and for requests
 * that wait behind a response. A body larger than `answerPieceBytes` is sent in pieces, so that TLS
 * never has an encrypted copy of the whole body. Unsent bytes count against the source (an IPv4
 * address, a /64 of IPv6). The controller closes a connection on which the client stops reading or
 * reads too slowly; one without progress earlier, if other clients need the memory.
 */
export class UnreadResponses {
  readonly #limits: UnsentLimits
  readonly #room: FairShare
  /** Unread responses, sorted by their last progress, oldest first. */
  readonly #unread = new LinkedList<Unread>()
  #looking: NodeJS.Timeout | null = null

  constructor(limits: UnsentLimits) {
    this.#limits = limits
    this.#room = new FairShare(limits.unsentBytesMax)
  }

  /**
   * Whether a response of this size may be sent to the source. Call it before the head of the
   * response is written. If memory is short, first closes connections whose clients read nothing.
   */
  hasRoomFor(source: string, bytes: number): boolean {
    // @guard answers-owed-to-one-source
    if (bytes <= SMALL_BYTES) return true
    // @guard unread-answers-of-many--room
    while (!this.#room.hasRoomFor(source)) if (!this.#closeQuietest(source)) return false
    return true
  }

  /** Counts the bytes of a response, or of a part of it, while it is being created. */
  take(source: string, bytes: number): void {
    this.#room.take(source, bytes)
  }

  giveBack(source: string, bytes: number): void {
    this.#room.giveBack(source, bytes)
  }

  /**
   * Counts a request that waits for the previous response.
   * @param isFirst true for the only waiting request of its connection. Such a request is never
   * refused, because its client may already have read the previous response without this controller
   * knowing it.
   * @returns a function to call when the request is started or dropped; null if no memory is left.
   */
  holdRequest(source: string, isFirst: boolean): (() => void) | null {
    // @guard pipelined-requests--source
    if (!isFirst && !this.hasRoomFor(source, WAITING_REQUEST_BYTES)) return null
    this.#room.take(source, WAITING_REQUEST_BYTES)
    return () => this.#room.giveBack(source, WAITING_REQUEST_BYTES)
  }

  /**
   * Writes the body. The head of the response must have been written.
   * @param end called with the last piece of the body, which may be the whole body; it must write
   * the piece and end the response. By default, this is done immediately.
   */
  send(
    response: ServerResponse,
    source: string,
    body: ReplyBody,
    byteLength: number,
    end: (piece: string | Buffer, encoding: BufferEncoding) => void = (piece, encoding) => {
      response.end(piece, encoding)
    },
  ): void {
    if (byteLength > this.#limits.answerPieceBytes) {
      this.#sendInPieces(response, source, body, end)
      return
    }
    if (typeof body === 'string') {
      // Sends plain ASCII, which nearly every response is, without conversion.
      end(body, byteLength === body.length ? 'latin1' : 'utf8')
    } else {
      end(isShared(body) ? body : Buffer.concat(body), 'latin1')
    }
    // @guard unread-answers-of-many--piece
    this.#hold(response, source, 2 * byteLength, byteLength)
  }

  #sendInPieces(
    response: ServerResponse,
    source: string,
    body: ReplyBody,
    endWith: (piece: Buffer, encoding: BufferEncoding) => void,
  ): void {
    const { answerPieceBytes } = this.#limits
    const parts = isShared(body) ? [body] : typeof body === 'string' ? [Buffer.from(body)] : body
    const totalBytes = bodyByteLength(body)
    // Memory holds a piece twice: unencrypted and encrypted.
    const heldBytes = 2 * answerPieceBytes + (isShared(body) ? 0 : totalBytes)
    const unread = this.#hold(response, source, heldBytes, totalBytes)
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
        // @guard unread-answers
        if (response.write(piece)) continue
        response.once('drain', () => {
          if (unread !== null) this.#noteMove(unread)
          sendMore()
        })
        return
      }
    }
    sendMore()
  }

  /**
   * Counts the bytes against the source until the response is sent or the connection has closed.
   */
  #hold(
    response: ServerResponse,
    source: string,
    bytes: number,
    totalBytes: number,
  ): Unread | null {
    if (response.writableFinished || response.destroyed) return null
    const { answerStallMs, answerBytesPerSecondMin, timeoutCheckMs } = this.#limits
    const movedMs = systemClock.monotonicMs()
    const dueMs = movedMs + answerStallMs + (totalBytes * 1000) / answerBytesPerSecondMin
    this.#room.take(source, bytes)
    const unread = { response, source, bytes, dueMs, movedMs, looks: 0, before: null, after: null }
    this.#unread.append(unread)
    response.once('close', () => this.#release(unread))
    this.#looking ??= setInterval(() => this.#look(), timeoutCheckMs).unref()
    return unread
  }

  #noteMove(unread: Unread): void {
    if (!this.#unread.remove(unread)) return
    unread.movedMs = systemClock.monotonicMs()
    unread.looks = 0
    this.#unread.append(unread)
  }

  #release(unread: Unread): void {
    if (this.#unread.remove(unread)) this.#room.giveBack(unread.source, unread.bytes)
  }

  #close(unread: Unread): void {
    this.#release(unread)
    unread.response.req.socket.destroy()
  }

  /**
   * Closes the connection that has made no progress for the longest time. Chooses among the
   * connections of this source or, if the memory for all sources is used up, of the source that
   * uses most.
   * @returns false if none of these connections may be closed, usually because all have recently
   * made progress.
   */
  #closeQuietest(source: string): boolean {
    const from = this.#room.isFull ? this.#room.largest() : source
    const quietSinceMs = systemClock.monotonicMs() - this.#limits.answerQuietMs
    for (const unread of this.#unread) {
      if (unread.movedMs > quietSinceMs) return false
      if (unread.source !== from || unread.bytes <= SMALL_BYTES) continue
      if (unread.looks < LOOKS_MIN) continue
      this.#close(unread)
      return true
    }
    return false
  }

  /**
   * Closes connections without progress for `answerStallMs`, and connections on which a response is
   * read more slowly than `answerBytesPerSecondMin`.
   */
  #look(): void {
    const nowMs = systemClock.monotonicMs()
    const { answerStallMs } = this.#limits
    for (const unread of this.#unread) {
      unread.looks += 1
      const isStalled = nowMs - unread.movedMs >= answerStallMs
      // @guard slow-reader, unread-answers--stalled
      if (isStalled || nowMs >= unread.dueMs) this.#close(unread)
    }
    if (!this.#unread.isEmpty || this.#looking === null) return
    clearInterval(this.#looking)
    this.#looking = null
  }
}

/** Error for a request while clients leave too many responses unread. */
export function unreadResponsesLimitProblem(): Problem {
  return new Problem('SERVER_TOO_MANY_REQUESTS', {
    detail: 'clients at this address have not read earlier responses',
  })
}

/** Splits the parts of a body into views that are no larger than a piece. */
function* piecesOf(parts: readonly Buffer[], pieceBytes: number): Generator<Buffer, void> {
  for (const part of parts) {
    for (let at = 0; at < part.length; at += pieceBytes) yield part.subarray(at, at + pieceBytes)
  }
}
