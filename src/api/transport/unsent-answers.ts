import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { FairShare } from '../../lib/fair-share.ts'
import type { ApiLimits } from '../limits.ts'

type UnsentLimits = Pick<
  ApiLimits,
  'answerPieceBytes' | 'answerStallMs' | 'answerBytesPerSecondMin' | 'unsentBytesMax'
>

/** A body: text that was made for one answer, or bytes that many answers share. */
export type Body = string | Buffer

/** The answers of one connection that its client has not read yet. */
interface Unread {
  /** One an answer: gives back what it holds. */
  readonly releases: Set<() => void>
  readonly stalled: NodeJS.Timeout
  readonly onClose: () => void
}

/**
 * Sends the bodies of answers no faster than their clients read them. A body that is larger than a piece goes out piece by
 * piece, so that TLS never holds an encrypted copy of all of it; what is not sent yet counts against its source; and a client
 * that stops reading, or reads too slowly, loses its connection.
 */
export class UnsentAnswers {
  readonly #limits: UnsentLimits
  readonly #unsent: FairShare
  readonly #unread = new WeakMap<Socket, Unread>()

  constructor(limits: UnsentLimits) {
    this.#limits = limits
    this.#unsent = new FairShare(limits.unsentBytesMax)
  }

  /** Whether the source may be owed an answer of so many bytes; asked before its head is written. */
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
    end: (piece: Body, encoding: BufferEncoding) => void,
  ): void {
    if (byteLength > this.#limits.answerPieceBytes) {
      this.#sendInPieces(response, source, body, end)
      return
    }
    // Plain ASCII, as nearly every answer is, goes out as it lies in memory.
    end(body, byteLength === body.length ? 'latin1' : 'utf8')
    if (isBackedUp(response, this.#limits.answerPieceBytes)) {
      this.#hold(response, source, byteLength, byteLength)
    }
  }

  #sendInPieces(
    response: ServerResponse,
    source: string,
    body: Body,
    endWith: (piece: Body, encoding: BufferEncoding) => void,
  ): void {
    const isShared = typeof body !== 'string'
    const bytes = isShared ? body : Buffer.from(body, 'utf8')
    const { answerPieceBytes } = this.#limits
    const heldBytes = isShared ? answerPieceBytes : bytes.length
    const progressed = this.#hold(response, source, heldBytes, bytes.length)
    let at = 0
    const sendMore = (): void => {
      for (;;) {
        const piece = bytes.subarray(at, at + answerPieceBytes)
        at += piece.length
        if (at === bytes.length) {
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
   * Counts the bytes against the source until the response is sent or its connection is gone, and ends the connection when
   * nothing of its answers moves for `answerStallMs`, or this one takes longer than `answerBytesPerSecondMin` allows.
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
    const release = (): void => {
      if (!unread.releases.delete(release)) return
      clearTimeout(tooSlow)
      if (unread.releases.size === 0) this.#forget(socket, unread)
      else unread.stalled.refresh()
      this.#unsent.giveBack(source, heldBytes)
    }
    unread.releases.add(release)
    response.once('close', release)
    return () => unread.stalled.refresh()
  }

  #unreadOf(socket: Socket): Unread {
    const known = this.#unread.get(socket)
    if (known !== undefined) return known
    const releases = new Set<() => void>()
    // Responses that never had their turn emit no event when the connection closes.
    const onClose = (): void => {
      for (const release of releases) release()
    }
    const stalled = setTimeout(() => socket.destroy(), this.#limits.answerStallMs)
    const unread = { releases, stalled, onClose }
    this.#unread.set(socket, unread)
    socket.once('close', onClose)
    return unread
  }

  #forget(socket: Socket, { stalled, onClose }: Unread): void {
    clearTimeout(stalled)
    socket.off('close', onClose)
    this.#unread.delete(socket)
  }
}

/** Whether a client that reads would have taken more by now, or earlier answers stand before this one. */
function isBackedUp({ socket, writableFinished }: ServerResponse, bytesMax: number): boolean {
  return !writableFinished && (socket === null || socket.writableLength >= bytesMax)
}
