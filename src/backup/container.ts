/**
 * A backup file, format 1, little endian. Each part is followed by its own checksum; the last 32
 * bytes are the checksum of all bytes before them. The parts, with lengths in bytes:
 * - head: magic "FLOTBKP1" · u32 length of the manifest · manifest (JSON) · SHA-256 of the manifest
 * - each frame: u32 length of the body (not 0) · body · SHA-256 of (u32 number of the frame, from
 *   0 · body)
 * - end: u32 0 · u32 length of the summary · summary (JSON) · SHA-256 of the summary · u32 length
 *   of the summary · SHA-256 of all bytes before it
 *
 * The concatenated bodies, decrypted if the manifest has an encryption, are the content
 * (content.ts).
 */
import { createHash, hash, type Hash } from 'node:crypto'

import { assert } from '../lib/assert.ts'
import { BackupFault, truncatedBackupFault, damagedBackupFault } from './backup-fault.ts'
import { backupLimits } from './limits.ts'
import {
  BACKUP_FORMAT,
  type BackupManifest,
  type BackupSummary,
  decodeManifest,
  decodeSummary,
  encodeCanonicalJson,
  unsupportedBackupFault,
} from './manifest.ts'

const { frameBytesMax, manifestBytesMax, summaryBytesMax } = backupLimits

export const BACKUP_MAGIC_PREFIX = 'FLOTBKP'
const MAGIC = Buffer.from(`${BACKUP_MAGIC_PREFIX}${BACKUP_FORMAT}`, 'latin1')
const COUNT_BYTES = 4
const CHECK_BYTES = 32
/**
 * Size of the last two fields of the file: the length of the summary, and the checksum of all
 * bytes.
 */
const TAIL_BYTES = COUNT_BYTES + CHECK_BYTES

function count(value: number): Buffer {
  const bytes = Buffer.alloc(COUNT_BYTES)
  bytes.writeUInt32LE(value)
  return bytes
}

function checksum(...parts: readonly Uint8Array[]): Buffer {
  const [only] = parts
  if (parts.length === 1 && only !== undefined) return hash('sha256', only, 'buffer')
  const made = createHash('sha256')
  for (const part of parts) made.update(part)
  return made.digest()
}

/** Encodes a backup part by part, in file order; each call returns the next bytes to write. */
export class BackupContainerWriter {
  readonly #all = createHash('sha256')
  #frames = 0
  #bytes = 0

  /** Number of frames encoded so far. */
  get frames(): number {
    return this.#frames
  }

  /** Number of bytes encoded so far. */
  get bytes(): number {
    return this.#bytes
  }

  head(manifest: Uint8Array): Uint8Array[] {
    assert(manifest.length <= manifestBytesMax, 'a manifest is small')
    return this.#put([MAGIC, count(manifest.length), manifest, checksum(manifest)])
  }

  frame(body: Uint8Array): Uint8Array[] {
    assert(body.length > 0 && body.length <= frameBytesMax, 'a frame is bounded and not empty')
    const check = checksum(count(this.#frames), body)
    this.#frames += 1
    return this.#put([count(body.length), body, check])
  }

  /** The last bytes of the file; they end with the checksum of all bytes before it. */
  tail(summary: BackupSummary): Uint8Array[] {
    const bytes = encodeCanonicalJson(summary)
    const length = count(bytes.length)
    const parts = this.#put([count(0), length, bytes, checksum(bytes), length])
    return [...parts, ...this.#put([this.#all.copy().digest()])]
  }

  /** SHA-256 of the whole file in hex; call this once, after `tail`. */
  sha256(): string {
    return this.#all.digest('hex')
  }

  #put(parts: Uint8Array[]): Uint8Array[] {
    for (const part of parts) {
      this.#all.update(part)
      this.#bytes += part.length
    }
    return parts
  }
}

type Step =
  | 'magic'
  | 'manifestHead'
  | 'manifest'
  | 'frameHead'
  | 'frame'
  | 'tailHead'
  | 'tail'
  | 'done'

/**
 * Decodes a backup from a stream of chunks and returns the bodies of its frames. Keeps at most one
 * part and one chunk in memory.
 */
export class BackupContainerReader {
  readonly #all: Hash = createHash('sha256')
  #pieces: Uint8Array[] = []
  #available = 0
  #step: Step = 'magic'
  #needed = MAGIC.length
  #frames = 0
  #read = 0
  #manifest: { readonly value: BackupManifest; readonly sha256: Uint8Array } | null = null
  #summary: BackupSummary | null = null
  #sha256 = ''
  #endChecksum = ''

  /** null until the head has been read. */
  get manifest(): BackupManifest | null {
    return this.#manifest?.value ?? null
  }

  get manifestSha256(): Uint8Array {
    assert(this.#manifest !== null, 'the head of the backup has been read')
    return this.#manifest.sha256
  }

  /** SHA-256 of the whole file in hex; available after `finish`. */
  get sha256(): string {
    return this.#sha256
  }

  /** The checksum in the last bytes of the file in hex; available after `finish`. */
  get endChecksum(): string {
    return this.#endChecksum
  }

  /** @throws {BackupFault}; do not use the reader after an error. */
  push(chunk: Uint8Array): Uint8Array[] {
    this.#pieces.push(chunk)
    this.#available += chunk.length
    const bodies: Uint8Array[] = []
    while (this.#step !== 'done' && this.#available >= this.#needed) {
      const body = this.#advance(this.#take(this.#needed))
      if (body !== null) bodies.push(body)
    }
    if (this.#step === 'done' && this.#available > 0)
      throw damagedBackupFault('bytes follow the end')
    return bodies
  }

  /**
   * @throws {BackupFault} CUT_OFF, or NOT_A_BACKUP when the file is shorter than the magic bytes.
   */
  finish(): BackupSummary {
    if (this.#step === 'magic') throw notABackup()
    if (this.#summary === null) throw truncatedBackupFault(this.#read + this.#available)
    return this.#summary
  }

  #take(length: number): Buffer {
    const joined = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces)
    assert(joined !== undefined, 'bytes are read only if there are some')
    const rest = joined.subarray(length)
    this.#pieces = rest.length === 0 ? [] : [rest]
    this.#available = rest.length
    this.#read += length
    const taken = Buffer.from(joined.buffer, joined.byteOffset, length)
    this.#all.update(this.#step === 'tail' ? taken.subarray(0, -CHECK_BYTES) : taken)
    return taken
  }

  #expect(step: Step, needed: number): null {
    this.#step = step
    this.#needed = needed
    return null
  }

  #advance(bytes: Buffer): Uint8Array | null {
    switch (this.#step) {
      case 'magic':
        checkMagic(bytes)
        return this.#expect('manifestHead', COUNT_BYTES)
      case 'manifestHead':
        return this.#expect('manifest', lengthIn(bytes, manifestBytesMax) + CHECK_BYTES)
      case 'manifest': {
        const body = checked(bytes, 'the head of the backup')
        this.#manifest = { value: decodeManifest(body), sha256: checksum(body) }
        return this.#expect('frameHead', COUNT_BYTES)
      }
      case 'frameHead': {
        const length = lengthIn(bytes, frameBytesMax)
        if (length === 0) return this.#expect('tailHead', COUNT_BYTES)
        return this.#expect('frame', length + CHECK_BYTES)
      }
      case 'frame':
        return this.#frame(bytes)
      case 'tailHead': {
        const length = lengthIn(bytes, summaryBytesMax)
        return this.#expect('tail', length + CHECK_BYTES + TAIL_BYTES)
      }
      case 'tail':
        this.#tail(bytes)
        return this.#expect('done', 0)
      case 'done':
        return null
    }
  }

  #frame(bytes: Buffer): Uint8Array {
    const body = bytes.subarray(0, -CHECK_BYTES)
    if (!checksum(count(this.#frames), body).equals(bytes.subarray(-CHECK_BYTES))) {
      throw damagedBackupFault(`frame ${this.#frames} of the backup is damaged`)
    }
    this.#frames += 1
    this.#expect('frameHead', COUNT_BYTES)
    return body
  }

  #tail(bytes: Buffer): void {
    const summary = summaryIn(bytes)
    if (summary.frames !== this.#frames) {
      throw damagedBackupFault(`the backup has ${this.#frames} of ${summary.frames} frames`)
    }
    const sum = this.#all.copy().digest()
    if (!sum.equals(bytes.subarray(-CHECK_BYTES)))
      throw damagedBackupFault('the checksum does not match')
    this.#summary = summary
    this.#endChecksum = sum.toString('hex')
    this.#sha256 = this.#all.update(sum).digest('hex')
  }
}

/**
 * Reads the summary from the last bytes of a file.
 * @throws {BackupFault} when the bytes are not the end of a backup.
 */
export function decodeTrailingSummary(bytes: Uint8Array): BackupSummary {
  const last = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  if (last.length < TAIL_BYTES) throw truncatedBackupFault(last.length)
  const length = last.readUInt32LE(last.length - TAIL_BYTES)
  const from = last.length - TAIL_BYTES - CHECK_BYTES - length
  if (from < 0) throw damagedBackupFault('the end of the backup is missing')
  return summaryIn(last.subarray(from))
}

/** Number of bytes at the end of a file that always contain the summary. */
export const BACKUP_SUMMARY_BYTES_MAX = summaryBytesMax + CHECK_BYTES + TAIL_BYTES
/** Number of bytes at the start of a file that always contain the manifest. */
export const BACKUP_HEAD_BYTES_MAX = MAGIC.length + COUNT_BYTES + manifestBytesMax + CHECK_BYTES

function summaryIn(bytes: Buffer): BackupSummary {
  const length = bytes.length - CHECK_BYTES - TAIL_BYTES
  const body = checked(bytes.subarray(0, length + CHECK_BYTES), 'the end of the backup')
  if (bytes.readUInt32LE(length + CHECK_BYTES) !== length) {
    throw damagedBackupFault('the end of the backup is damaged')
  }
  return decodeSummary(body)
}

function checkMagic(bytes: Buffer): void {
  if (bytes.equals(MAGIC)) return
  const text = bytes.toString('latin1')
  const format = Number(text.slice(BACKUP_MAGIC_PREFIX.length))
  if (text.startsWith(BACKUP_MAGIC_PREFIX) && format > BACKUP_FORMAT)
    throw unsupportedBackupFault(format)
  throw notABackup()
}

function notABackup(): BackupFault {
  return new BackupFault(
    'NOT_A_BACKUP',
    'not a backup of flotilla; name a file written by cluster snapshot save',
  )
}

function lengthIn(bytes: Buffer, max: number): number {
  const length = bytes.readUInt32LE()
  if (length <= max) return length
  throw damagedBackupFault('a length in the backup is beyond the limits')
}

/**
 * Verifies the checksum at the end of a part and removes it.
 * @throws {BackupFault} DAMAGED.
 */
function checked(bytes: Buffer, what: string): Buffer {
  const body = bytes.subarray(0, -CHECK_BYTES)
  if (checksum(body).equals(bytes.subarray(-CHECK_BYTES))) return body
  throw damagedBackupFault(`${what} is damaged`)
}
