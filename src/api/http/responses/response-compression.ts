import {
  brotliCompress,
  brotliCompressSync,
  constants,
  gzip,
  gzipSync,
  type CompressCallback,
} from 'node:zlib'
import { FairShare } from '../../../lib/bounds/fair-share.ts'
import type { ReplyBody } from '../transport/unread-responses.ts'
import { acceptedCodings } from './accepted-codings.ts'

interface CompressionLimits {
  readonly compressedBytesMin: number
  readonly compressedBytesMax: number
  readonly compressedAtOnceBytesMax: number
  readonly compressionsMax: number
}

export type CompressionCoding = 'br' | 'gzip'

/**
 * Matches a response with a member whose value is a credential: the names of all such members, such
 * as `enrollmentJwt` and `verificationToken`, end in `oken` or `wt`. The controller writes JSON
 * without spaces.
 */
const SECRET = /(?:oken|wt)":"/
/** Whether the compression recognizes from this name that the member's value is a secret. */
export function isKnownSecretName(name: string): boolean {
  return SECRET.test(`"${name}":"`)
}

// Low compression levels. For a list of 100 identities, the highest level of gzip takes at least
// twice as long and makes the result only a twentieth smaller; that of Brotli takes more than a
// hundred times as long.
const GZIP = { level: 1 } as const
const BROTLI = {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 1,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
  },
}

/**
 * Compresses the bodies of responses. The length of a compressed body reveals which parts of it
 * are equal. An attacker who controls some text in a response, and sees the response's length on
 * the network, could guess a secret in the same response (BREACH). Therefore only responses of
 * operations that declare `isCompressible` are compressed, and never a body that contains a token.
 * A small body is compressed in the main thread, a larger body in another thread. When too many
 * larger bodies are being compressed, further ones are sent uncompressed.
 */
export class ResponseCompression {
  readonly #limits: CompressionLimits
  readonly #running: FairShare
  /**
   * Buffer that is reused for each text to compress: a new buffer for each text would cost as much
   * as compressing it.
   */
  #text: Buffer | null = null

  constructor(limits: CompressionLimits) {
    this.#limits = limits
    this.#running = new FairShare(limits.compressionsMax)
  }

  /** The coding for a body of this length; null if the body is to be sent uncompressed. */
  codingFor(acceptEncoding: string | undefined, byteLength: number): CompressionCoding | null {
    const { compressedBytesMin, compressedBytesMax } = this.#limits
    if (acceptEncoding === undefined) return null
    if (byteLength < compressedBytesMin || byteLength > compressedBytesMax) return null
    const accepted = acceptedCodings(acceptEncoding)
    if (accepted.has('br')) return 'br'
    return accepted.has('gzip') ? 'gzip' : null
  }

  /**
   * @param sharer the caller, whose concurrent compressions in other threads are limited.
   * @param isWaiting called if another thread compresses the body, so that the result arrives
   * later.
   * @param done receives the compressed body, or null if the body is to be sent uncompressed.
   */
  compress(
    sharer: string,
    body: ReplyBody,
    byteLength: number,
    coding: CompressionCoding,
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

  /** The bytes of a body; valid until the next call, which overwrites them. */
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
