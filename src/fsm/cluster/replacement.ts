import type { ConfigType } from '../../entities/kinds/config-type.ts'
import type { Enrollment } from '../../entities/kinds/enrollment.ts'
import type { Mfa } from '../../entities/kinds/mfa.ts'
import { entities } from '../../entities/registry.ts'
import type { KindName } from '../../entities/kind-records.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import { gainsCertificateNames, gainsRights } from '../apply/actor-rights.ts'
import type { State } from '../records/state.ts'
import { upgradeConfigTypeSchema } from '../seed/superseded-schemas.ts'
import type { NormalizedRecord } from '../records/record-blocks.ts'

/**
 * Kinds that a restore does not replace: join tickets, admissions and shared secrets of the
 * controllers, revocations, the log-time reset, announced expiries of access, and the last
 * integrity run. Restoring admissions or revocations would admit removed controllers or accept
 * revoked tokens. Identity types belong to the feature level, and backups contain no others.
 */
const keptKinds: ReadonlySet<KindName> = new Set<KindName>([
  'accessEnd',
  'admission',
  'identityType',
  'integrityRun',
  'joinTicket',
  'logTimeReset',
  'revocation',
  'sharedSecret',
])
/**
 * Kinds whose records are all removed by a restore: sessions and the records that depend on them.
 */
const endedKinds: ReadonlySet<KindName> = new Set<KindName>([
  'accessMark',
  'apiSession',
  'session',
  'sessionCertificate',
])

const ownKinds = entities.flatMap(({ name, table }) => (name === table ? [name] : []))

/** Kinds whose records a restore replaces. */
export const restoredKinds: ReadonlySet<KindName> = new Set(
  ownKinds.filter((kind) => !keptKinds.has(kind) && !endedKinds.has(kind)),
)

/** Changes that replace the records of one kind. */
export interface KindReplacement {
  readonly kind: KindName
  readonly created: readonly NormalizedRecord[]
  readonly changed: readonly NormalizedRecord[]
  readonly deleted: readonly string[]
}

/**
 * Changes with which the records of a backup replace the records of a state, kind by kind. The
 * preview of a restore and the restore itself use this function.
 * @param revision revision that every record gets if the backup is from another cluster, because
 * the revisions in that backup refer to another log; null: records keep their revisions.
 */
export function planRecordReplacement(
  state: State,
  staged: Iterable<NormalizedRecord>,
  revision: number | null,
): KindReplacement[] {
  const restored = new Map<KindName, Map<string, NormalizedRecord>>(
    [...restoredKinds].map((kind) => [kind, new Map()]),
  )
  for (const one of staged) {
    const adapted = adaptedTo(state, one, revision)
    if (adapted !== null) restored.get(one.kind)?.set(one.record.id, adapted)
  }
  withdrawReadEnrollments(state, restored)
  return ownKinds.flatMap((kind) => {
    if (keptKinds.has(kind)) return []
    const changes = changesOf(state, kind, restored.get(kind) ?? new Map())
    return isNothing(changes) ? [] : changes
  })
}

/**
 * Adapts a record to the current state.
 * @returns null for a record that the restore omits.
 */
function adaptedTo(
  state: State,
  one: NormalizedRecord,
  revision: number | null,
): NormalizedRecord | null {
  // @guard restore-spent-tokens-stay-spent
  if (one.kind === 'enrollment' && !isStillOpen(state, one.record as Enrollment)) return null
  const changed = changedByNow(state, one)
  if (changed === null && revision === null) return one
  const moved = revision === null ? {} : { revision }
  return state.shaped(one.kind, { ...one.record, ...changed, ...moved })
}

/**
 * Whether an enrollment in the backup is still open: false for a token that was used, refreshed or
 * revoked since the backup.
 */
function isStillOpen(state: State, { id, token }: Enrollment): boolean {
  // @guard enrollments-read-before-a-promotion--refreshed
  return state.get('enrollment', id)?.token === token
}

/**
 * Omits the enrollments of identities that gain a right through the restore, and of routers that
 * gain a permitted name: before the restore, callers with fewer rights could read their tokens.
 */
function withdrawReadEnrollments(
  state: State,
  restored: ReadonlyMap<KindName, Map<string, NormalizedRecord>>,
): void {
  const enrollments = restored.get('enrollment')
  for (const [id, { record }] of enrollments ?? []) {
    const { identityId, edgeRouterId, transitRouterId } = record as Enrollment
    const routerId = edgeRouterId || transitRouterId
    const identity = restored.get('identity')?.get(identityId)?.record
    const router = restored.get('router')?.get(routerId)?.record
    // @guard enrollments-read-before-a-promotion--restored-names
    const gains =
      (identity !== undefined && gainsRights(state.get('identity', identityId), identity)) ||
      (router !== undefined && gainsCertificateNames(state.get('router', routerId), router))
    // @guard enrollments-read-before-a-promotion--restore
    if (gains) enrollments?.delete(id)
  }
}

/**
 * Fields that a restore does not take unchanged from the backup: the used codes and the current
 * encryption of a second factor, and updated schemas; null: none.
 */
function changedByNow(
  state: State,
  { kind, record }: NormalizedRecord,
): Readonly<Record<string, Json>> | null {
  if (kind === 'mfa') return spentSince(state, record as Mfa)
  const carried = kind === 'configType' ? upgradeConfigTypeSchema(record as ConfigType) : null
  return carried === null ? null : { schema: carried.schema }
}

/**
 * MFA fields that a restore does not take from the backup; null if the identity now has no factor,
 * or one with another secret. Codes that were used since the backup remain used. Unless the
 * recovery codes were replaced since, the factor remains encrypted with the current key.
 */
function spentSince(state: State, restored: Mfa): Record<string, Json> | null {
  const now = state.get('mfa', restored.id)
  if (now === undefined || now.secretId !== restored.secretId) return null
  const lastStep = Math.max(now.lastStep ?? 0, restored.lastStep ?? 0)
  if (now.codesId !== restored.codesId) return { lastStep }
  const usedCodes = [...new Set([...(restored.usedCodes ?? []), ...(now.usedCodes ?? [])])]
  return { lastStep, usedCodes, sealed: now.sealed, keyVersion: now.keyVersion }
}

function changesOf(
  state: State,
  kind: KindName,
  restored: ReadonlyMap<string, NormalizedRecord>,
): KindReplacement {
  const { rows } = state.table(kind)
  const created: NormalizedRecord[] = []
  const changed: NormalizedRecord[] = []
  for (const [id, one] of restored) {
    const before = rows.get(id)
    if (before === undefined) created.push(one)
    else if (!isSame(before.lanes, one.lanes)) changed.push(one)
  }
  const deleted = [...rows.keys()].filter((id) => !restored.has(id))
  return { kind, created, changed, deleted }
}

/**
 * Whether two digests are equal. Different records have different digests, unless SHA-256 is
 * broken.
 */
function isSame(a: NormalizedRecord['lanes'], b: NormalizedRecord['lanes']): boolean {
  return a.a === b.a && a.b === b.b && a.c === b.c && a.d === b.d
}

function isNothing({ created, changed, deleted }: KindReplacement): boolean {
  return created.length + changed.length + deleted.length === 0
}

/** A second factor that no controller could decrypt after the restore; null when there is none. */
export function findUnreadableFactor(
  state: State,
  replacement: readonly KindReplacement[],
): { readonly identityId: string; readonly keyVersion: number } | null {
  const versions = state.get('sharedSecret', 'factorKey')?.versions ?? []
  const held = new Set(versions.map(({ version }) => version))
  const factors = replacement.find(({ kind }) => kind === 'mfa')
  for (const { record } of [...(factors?.created ?? []), ...(factors?.changed ?? [])]) {
    const { identityId, keyVersion } = record as Mfa
    if (!held.has(keyVersion ?? 0)) return { identityId, keyVersion: keyVersion ?? 0 }
  }
  return null
}

/**
 * Applies the replacement. Deletions come first, because another record may then use the unique
 * name of a deleted one.
 */
export function applyRecordReplacement(
  state: State,
  replacement: readonly KindReplacement[],
): void {
  state.wholesale(() => {
    for (const { kind, changed, deleted } of replacement) {
      for (const id of deleted) state.remove(kind, id)
      // @guard restore-goes-before-it-comes
      for (const { record } of changed) state.remove(kind, record.id)
    }
    for (const { created, changed } of replacement) {
      for (const one of created) state.putShaped(one)
      for (const one of changed) state.putShaped(one)
    }
  })
}
