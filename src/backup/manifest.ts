import { canonicalJson } from '../lib/text/canonical-json.ts'
import type { StorePosition } from '../ports/state-store.ts'
import { BackupFault, damagedBackupFault } from './backup-fault.ts'
import { isNonNegativeInteger, isJsonObject } from '../lib/text/json-value.ts'
import { firstUnprintableCharacter } from '../lib/text/terminal-text.ts'

/** Raise this number when the content of backups changes: older programs refuse a newer format. */
export const BACKUP_FORMAT = 1

/** Head of a backup, readable without a key: its origin and the requirements for a restore. */
export interface BackupManifest {
  readonly format: number
  readonly clusterId: string
  readonly trustDomain: string
  readonly generation: number
  /** Index of the last log entry whose effect the state contains. */
  readonly index: number
  readonly term: number
  /** Log time of the last entry in the state, UTC ms. */
  readonly logTimeMs: number
  readonly featureLevel: number
  /** Hex digests of the state. */
  readonly digest: string
  readonly entitiesDigest: string
  /** UTC ms, by the clock of the controller that created the backup. */
  readonly takenAtMs: number
  readonly controllerId: string
  readonly version: string
  /** Ids of the cluster's controllers, sorted. */
  readonly members: readonly string[]
  /** CA certificates that the cluster trusts for controllers, routers and clients. */
  readonly caPem: string
  /** Whether the backup contains the secrets that a new cluster needs to replace the old one. */
  readonly hasSecrets: boolean
  readonly encryption: BackupEncryption | null
}

/** Generation in a backup that `flotilla migrate` wrote; the first generation of a cluster is 1. */
export const MIGRATED_GENERATION = 0

/** How the content is encrypted, and for which recipient. */
export interface BackupEncryption {
  /** The key of the content, as compact JWE for the recipient. */
  readonly wrappedKey: string
  /**
   * SHA-256 of the recipient's public key (DER) in hex; identifies the private key that decrypts
   * the backup.
   */
  readonly recipientSha256: string
}

/** Summary at the end of a backup, with totals of everything before it. */
export interface BackupSummary {
  /** Number of records by kind, sorted by name. */
  readonly counts: Readonly<Record<string, number>>
  readonly frames: number
  /** Bytes of the content, before encryption. */
  readonly bytes: number
}

/** The manifest fields that the position of the state determines. */
export function manifestPositionFields(
  mark: StorePosition,
): Pick<
  BackupManifest,
  'index' | 'term' | 'logTimeMs' | 'featureLevel' | 'digest' | 'entitiesDigest'
> {
  const { position, timeMs, featureLevel, digest, entitiesDigest } = mark
  return { ...position, logTimeMs: timeMs, featureLevel, digest, entitiesDigest }
}

/** Canonical JSON in UTF-8, so that equal values give equal bytes. */
export function encodeCanonicalJson(value: unknown): Buffer {
  return Buffer.from(canonicalJson(value), 'utf8')
}

/** @throws {BackupFault} NEWER_FORMAT, DAMAGED. */
export function decodeManifest(bytes: Uint8Array): BackupManifest {
  const found = parseObject(bytes)
  const format = found?.['format']
  if (typeof format === 'number' && format > BACKUP_FORMAT) throw unsupportedBackupFault(format)
  if (found === null) throw damagedBackupFault('the head of the backup is malformed')
  const name = malformedIn(found)
  if (name !== null) throw damagedBackupFault(`${name} in the head of the backup is malformed`)
  return found as Members & BackupManifest
}

/** @throws {BackupFault} DAMAGED. */
export function decodeSummary(bytes: Uint8Array): BackupSummary {
  const found = parseObject(bytes)
  if (found === null || !isSummary(found))
    throw damagedBackupFault('the end of the backup is malformed')
  return found
}

/** @param format the format number in the header; this program does not support it. */
export function unsupportedBackupFault(format: number): BackupFault {
  return new BackupFault(
    'NEWER_FORMAT',
    `the backup has format ${format} and this program reads ${BACKUP_FORMAT}; use the release of flotilla that wrote it`,
  )
}

type Members = Readonly<Record<string, unknown>>

function parseObject(bytes: Uint8Array): Members | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'))
    return isJsonObject(value) ? value : null
  } catch {
    return null
  }
}

/** Validators for the fields of a manifest, because a backup may come from an attacker. */
const rules: Readonly<Record<keyof BackupManifest, (value: unknown) => boolean>> = {
  format: isNonNegativeInteger,
  clusterId: isShortText,
  trustDomain: isShortText,
  generation: isNonNegativeInteger,
  index: isNonNegativeInteger,
  term: isNonNegativeInteger,
  logTimeMs: isTime,
  featureLevel: isNonNegativeInteger,
  digest: isShortText,
  entitiesDigest: isShortText,
  takenAtMs: isTime,
  controllerId: isShortText,
  version: isShortText,
  members: (value) =>
    Array.isArray(value) && value.length <= MEMBERS_MAX && value.every(isShortText),
  // Only the type is checked here; the reader of the whole backup checks the certificates.
  caPem: (value) => typeof value === 'string',
  hasSecrets: (value) => typeof value === 'boolean',
  encryption: (value) => value === null || isEncryption(value),
}

const TEXT_CHARACTERS_MAX = 512
const MEMBERS_MAX = 256
const WRAPPED_KEY_CHARACTERS_MAX = 16 * 1024

/** @returns the name of the first malformed field; null if there is none. */
function malformedIn(found: Members): string | null {
  return Object.entries(rules).find(([name, accepts]) => !accepts(found[name]))?.[0] ?? null
}

/**
 * Whether a value is a short line without terminal control characters, because commands print it.
 */
function isShortText(value: unknown): boolean {
  // @guard backup-of-a-stranger--text
  return (
    typeof value === 'string' &&
    value.length <= TEXT_CHARACTERS_MAX &&
    firstUnprintableCharacter(value) === null
  )
}

/** Whether a value is a time in UTC ms that `Date` supports. */
function isTime(value: unknown): boolean {
  // @guard backup-of-a-stranger--time
  return isNonNegativeInteger(value) && !Number.isNaN(new Date(value).getTime())
}

function isEncryption(value: unknown): boolean {
  if (!isJsonObject(value)) return false
  const { wrappedKey, recipientSha256 } = value
  const isKey = typeof wrappedKey === 'string' && /^[\w.-]+$/.test(wrappedKey)
  return isKey && wrappedKey.length <= WRAPPED_KEY_CHARACTERS_MAX && isShortText(recipientSha256)
}

function isSummary(found: Members): found is Members & BackupSummary {
  const { counts, frames, bytes } = found
  return (
    isJsonObject(counts) &&
    Object.values(counts).every(isNonNegativeInteger) &&
    isNonNegativeInteger(frames) &&
    isNonNegativeInteger(bytes)
  )
}
