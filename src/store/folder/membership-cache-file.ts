import { open, rename } from 'node:fs/promises'

import { assert } from '../../lib/assert.ts'
import { canonicalJson } from '../../lib/text/canonical-json.ts'
import type {
  MembershipRecord,
  DurablePosition,
  PeerDiskRecord,
} from '../../ports/membership-cache.ts'
import { corruptError, unsupportedFormatError } from '../errors.ts'
import { nodeFileSystem, replaceFile, type FileSystem } from '../file-system.ts'
import { jsonChecksum, parseJsonObject } from '../json-file.ts'
import { isNonNegativeInteger } from '../../lib/text/json-value.ts'

/** Name of the file, in a data folder, that lists the last known members. */
export const MEMBERSHIP_CACHE_FILE_NAME = 'ROSTER'
const ROSTER_FORMAT = 1
const FILE_BYTES_MAX = 1024 * 1024
const CLAIMS_MAX = 256
const MARKS_MAX = 256
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/**
 * Writes the file durably and atomically. It contains only public data; `check` is a CRC-32 of the
 * other JSON members.
 */
export function writeMembershipCacheFile(
  dir: string,
  roster: MembershipRecord,
  files: FileSystem = nodeFileSystem,
): void {
  replaceFile(files, dir, MEMBERSHIP_CACHE_FILE_NAME, textOf(roster))
}

/**
 * Writes membership changes asynchronously, so that the calling thread does not wait. It writes one
 * change at a time. Of the changes that arrive during a write, it writes only the newest.
 */
export class MembershipCacheFile {
  readonly #dir: string
  readonly #onError: (error: unknown) => void
  #next: MembershipRecord | null = null
  #writing: Promise<void> | null = null

  /** @param dir the data folder. */
  constructor(dir: string, onError: (error: unknown) => void) {
    this.#dir = dir
    this.#onError = onError
  }

  write(roster: MembershipRecord): void {
    this.#next = roster
    this.#writing ??= this.#writeAll()
  }

  /** Resolves after every pending write has succeeded or failed. */
  async settled(): Promise<void> {
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    for (let next = this.#next; next !== null; next = this.#next) {
      this.#next = null
      try {
        await replaceSoon(this.#dir, textOf(next))
      } catch (error) {
        this.#onError(error)
      }
    }
    this.#writing = null
  }
}

async function replaceSoon(dir: string, text: string): Promise<void> {
  const temporary = `${dir}/${MEMBERSHIP_CACHE_FILE_NAME}.new`
  const file = await open(temporary, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.datasync()
  } finally {
    await file.close()
  }
  await rename(temporary, `${dir}/${MEMBERSHIP_CACHE_FILE_NAME}`)
  const folder = await open(dir, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function textOf(roster: MembershipRecord): string {
  const members = {
    format: ROSTER_FORMAT,
    configuration: Buffer.from(roster.configuration).toString('base64'),
    index: roster.index,
    claims: roster.claims.slice(0, CLAIMS_MAX).map((one) => Buffer.from(one).toString('base64')),
    marks: roster.marks.slice(0, MARKS_MAX).map(textMark),
  }
  const text = `${canonicalJson({ ...members, check: jsonChecksum(members) })}\n`
  assert(text.length <= FILE_BYTES_MAX, 'a roster is within its limit')
  return text
}

/**
 * Reads the membership cache.
 * @returns null when the file does not exist.
 * @throws {StoreError} CORRUPT or NEWER_FORMAT. A member that has run before can continue without
 * the file, because log and state contain the same data.
 */
export function readMembershipCacheFile(
  dir: string,
  files: FileSystem = nodeFileSystem,
): MembershipRecord | null {
  const path = `${dir}/${MEMBERSHIP_CACHE_FILE_NAME}`
  if (!files.exists(path)) return null
  const bytes = files.read(path)
  const found =
    bytes.length > FILE_BYTES_MAX ? null : parseJsonObject(Buffer.from(bytes).toString())
  if (found === null) throw corruptError(path, 'it is not a JSON object, or too large')
  const { check, ...members } = found
  const { format } = members
  if (typeof format === 'number' && format > ROSTER_FORMAT) {
    throw unsupportedFormatError(path, format, ROSTER_FORMAT)
  }
  const roster = check === jsonChecksum(members) ? rosterOf(members) : null
  if (roster === null) throw corruptError(path, 'its checksum does not match')
  return roster
}

function rosterOf(members: Record<string, unknown>): MembershipRecord | null {
  const { configuration, index, claims, marks } = members
  if (typeof index !== 'number' || !Number.isSafeInteger(index) || index < 0) return null
  if (!Array.isArray(claims) || claims.length > CLAIMS_MAX) return null
  const decoded = [configuration, ...(claims as unknown[])].map(bytesOf)
  const [first, ...rest] = decoded.filter((bytes) => bytes !== null)
  if (first === undefined || rest.length !== claims.length) return null
  const roster = { configuration: first, index, claims: rest }
  if (!Array.isArray(marks) || marks.length > MARKS_MAX) return null
  return { ...roster, marks: (marks as unknown[]).map(markOf).filter((mark) => mark !== null) }
}

/** Encodes 64-bit integers as strings, because a JSON number cannot represent them all. */
function textMark({ storeId, boot, startedAtMs, ...mark }: PeerDiskRecord): object {
  const store = Buffer.from(storeId).toString('base64')
  return { ...mark, storeId: store, boot: String(boot), startedAtMs: String(startedAtMs) }
}

const COUNT = /^[0-9]{1,20}$/

/**
 * Decodes a stored disk report.
 * @returns null for an incomplete record, which is treated as absent.
 */
function markOf(value: unknown): PeerDiskRecord | null {
  if (typeof value !== 'object' || value === null) return null
  const { id, generation, boot, startedAtMs, ...found } = value as Record<string, unknown>
  const storeId = bytesOf(found['storeId'])
  const [heard, answered, past] = ['heard', 'answered', 'past'].map((at) => storeMarkOf(found[at]))
  if (typeof id !== 'string' || !isNonNegativeInteger(generation) || storeId === null) return null
  if (typeof boot !== 'string' || typeof startedAtMs !== 'string') return null
  if (!COUNT.test(boot) || !COUNT.test(startedAtMs) || !heard || !answered || !past) return null
  const life = { boot: BigInt(boot), startedAtMs: BigInt(startedAtMs) }
  return { id, generation, storeId, ...life, heard, answered, past }
}

function storeMarkOf(value: unknown): DurablePosition | null {
  if (typeof value !== 'object' || value === null) return null
  const { term, index, applied } = value as Record<string, unknown>
  return isNonNegativeInteger(term) && isNonNegativeInteger(index) && isNonNegativeInteger(applied)
    ? { term, index, applied }
    : null
}

function bytesOf(value: unknown): Uint8Array | null {
  if (typeof value !== 'string' || !BASE64.test(value)) return null
  return Uint8Array.from(Buffer.from(value, 'base64'))
}
