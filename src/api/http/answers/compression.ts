import {
  brotliCompress,
  brotliCompressSync,
  constants,
  gzip,
  gzipSync,
  type CompressCallback,
} from 'node:zlib'
import { FairShare } from '../../../lib/bounds/fair-share.ts'
import type { ReplyBody } from '../transport/unsent-answers.ts'
import { acceptedCodings } from './codings.ts'

interface CompressionLimits {
  readonly compressedBytesMin: number
  readonly compressedBytesMax: number
  readonly compressedAtOnceBytesMax: number
  readonly compressionsMax: number
}

export type Coding = 'br' | 'gzip'

/**
 * Matches an answer with a member whose value gives access: all such members, like `enrollmentJwt`
 * and `verificationToken`, end with these words. The controller writes JSON without spaces.
 */
const SECRET = /(?:oken|wt)":"/
/** Whether the compression recognizes a member of that name as a secret. */
export function isKnownSecret(name: string): boolean {
  return SECRET.test(`"${name}":"`)
}

// The lowest levels: for a list of 100 identities, the highest ones take three times as long and
// save a twentieth more.
const GZIP = { level: 1 } as const
const BROTLI = {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 1,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
  },
}

/**
 * Compresses bodies of lists. The length of a compressed body shows which parts of it are equal. An
 * attacker that chooses text in an answer and sees its length on the network could guess a secret
 * in the same answer (BREACH). Therefore only operations that declare `isCompressible` are
 * compressed, and a body with a token never is. A body of a usual size is compressed at once, a
 * larger one in another thread, and only a few of those at a time. Beyond that, it is sent as it
 * is.
 */
export class AnswerCompression {
  readonly #limits: CompressionLimits
  readonly #running: FairShare
  /** Receives one text after the other: a new buffer for each costs as much as its compression. */
  #text: Buffer | null = null

  constructor(limits: CompressionLimits) {
    this.#limits = limits
    this.#running = new FairShare(limits.compressionsMax)
  }

  /** The coding for a body of that length; null: it is sent as it is. */
  codingFor(acceptEncoding: string | undefined, byteLength: number): Coding | null {
    const { compressedBytesMin, compressedBytesMax } = this.#limits
    if (acceptEncoding === undefined) return null
    if (byteLength < compressedBytesMin || byteLength > compressedBytesMax) return null
    const accepted = acceptedCodings(acceptEncoding)
    if (accepted.has('br')) return 'br'
    return accepted.has('gzip') ? 'gzip' : null
  }

  /**
   * @param sharer the caller, whose compressions in other threads are limited.
   * @param isWaiting called if the result comes later.
   * @param done receives the compressed body; null: it is sent as it is.
   */
  compress(
    sharer: string,
    body: ReplyBody,
    byteLength: number,
    coding: Coding,
    isWaiting: () => void,
    done: (compressed: Buffer | null) => void,
  ): void {
    // @guard lengths-of-compressed-answers--secrets
    if (hasSecret(body)) {
      done(null)
      return
    }
    if (byteLength <= this.#limits.compressedAtOnceBytesMax) {
      const bytes = this.#atOnceBytes(body)
      done(coding === 'br' ? brotliCompressSync(bytes, BROTLI) : gzipSync(bytes, GZIP))
      return
    }
    // @guard lengths-of-compressed-answers--room
    if (!this.#running.hasRoomFor(sharer)) {
      done(null)
      return
    }
    this.#running.take(sharer)
    isWaiting()
    const finish: CompressCallback = (error, compressed) => {
      this.#running.giveBack(sharer)
      done(error === null ? compressed : null)
    }
    const bytes = wholeBuffer(body)
    if (coding === 'br') brotliCompress(bytes, BROTLI, finish)
    else gzip(bytes, GZIP, finish)
  }

  /** The bytes of a body until the next call. */
  #atOnceBytes(body: ReplyBody): Buffer {
    if (typeof body !== 'string') return wholeBuffer(body)
    this.#text ??= Buffer.allocUnsafeSlow(this.#limits.compressedAtOnceBytesMax)
    return this.#text.subarray(0, this.#text.write(body))
  }
}

function hasSecret(body: ReplyBody): boolean {
  return SECRET.test(typeof body === 'string' ? body : wholeBuffer(body).toString('latin1'))
}

function wholeBuffer(body: ReplyBody): Buffer {
  if (typeof body === 'string') return Buffer.from(body)
  return Buffer.isBuffer(body) ? body : Buffer.concat(body)
}
