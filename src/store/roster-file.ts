import { crc32 } from 'node:zlib'

import { assert } from '../lib/assert.ts'
import { canonicalJson } from '../lib/canonical-json.ts'
import type { RosterRecord } from '../ports/roster.ts'
import { corrupt, newerFormat } from './errors.ts'
import { nodeFileSystem, replaceFile, type FileSystem } from './file-system.ts'

export const ROSTER_NAME = 'ROSTER'
const ROSTER_FORMAT = 1
const FILE_BYTES_MAX = 1024 * 1024
const CLAIMS_MAX = 256
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/** Durable and atomic. Only what is public is in it; `check` is a CRC-32 of the other members. */
export function writeRosterFile(
  dir: string,
  roster: RosterRecord,
  files: FileSystem = nodeFileSystem,
): void {
  const members = {
    format: ROSTER_FORMAT,
    configuration: Buffer.from(roster.configuration).toString('base64'),
    index: roster.index,
    claims: roster.claims.slice(0, CLAIMS_MAX).map((one) => Buffer.from(one).toString('base64')),
  }
  const text = `${canonicalJson({ ...members, check: checkOf(members) })}\n`
  assert(text.length <= FILE_BYTES_MAX, 'a roster is within its limit')
  replaceFile(files, dir, ROSTER_NAME, text)
}

/**
 * @returns null when there is none.
 * @throws {StoreError} CORRUPT or NEWER_FORMAT. A member that has run can do without it: log and state say the same.
 */
export function readRosterFile(
  dir: string,
  files: FileSystem = nodeFileSystem,
): RosterRecord | null {
  const path = `${dir}/${ROSTER_NAME}`
  if (!files.exists(path)) return null
  const bytes = files.read(path)
  const found = bytes.length > FILE_BYTES_MAX ? null : parseObject(Buffer.from(bytes).toString())
  if (found === null) throw corrupt(path, 'the roster is no JSON object of its size')
  const { check, ...members } = found
  const { format } = members
  if (typeof format === 'number' && format > ROSTER_FORMAT) {
    throw newerFormat(path, format, ROSTER_FORMAT)
  }
  const roster = check === checkOf(members) ? rosterOf(members) : null
  if (roster === null) throw corrupt(path, 'the roster does not match its own check')
  return roster
}

function checkOf(members: object): string {
  return crc32(canonicalJson(members)).toString(16).padStart(8, '0')
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}

function rosterOf(members: Record<string, unknown>): RosterRecord | null {
  const { configuration, index, claims } = members
  if (typeof index !== 'number' || !Number.isSafeInteger(index) || index < 0) return null
  if (!Array.isArray(claims) || claims.length > CLAIMS_MAX) return null
  const decoded = [configuration, ...(claims as unknown[])].map(bytesOf)
  const [first, ...rest] = decoded.filter((bytes) => bytes !== null)
  if (first === undefined || rest.length !== claims.length) return null
  return { configuration: first, index, claims: rest }
}

function bytesOf(value: unknown): Uint8Array | null {
  if (typeof value !== 'string' || !BASE64.test(value)) return null
  return Uint8Array.from(Buffer.from(value, 'base64'))
}
