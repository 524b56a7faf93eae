import { loadState, StateDamagedError } from '../fsm/records/load.ts'
import { type IntegrityFinding, IntegrityScan } from '../fsm/cluster/integrity-scan.ts'
import type { State } from '../fsm/records/state.ts'
import { canonicalJson } from '../lib/text/canonical-json.ts'
import type { StateStore, StoreReceiver } from '../ports/state-store.ts'
import { StoreError } from '../store/errors.ts'
import { MemoryStateStore } from '../store/state/memory-state-store.ts'
import { damagedBackupFault } from './backup-fault.ts'
import { type BackupManifest, manifestPositionFields } from './manifest.ts'
import { readBackup, type BackupReadResult } from './read-backup.ts'
import { ClusterState } from '../fsm/access/cluster-state.ts'

/** Options for reading a backup. The private key is required only for an encrypted one. */
export interface LoadBackupOptions {
  readonly privateKeyPem: string | null
  readonly onManifest?: (manifest: BackupManifest) => void
}

/** A backup together with the complete state that it contains. */
export interface LoadedBackup extends BackupReadResult {
  readonly state: ClusterState
}

/**
 * Loads the state of a backup into an empty store and into memory, and verifies every checksum,
 * record and digest.
 * @throws {BackupFault} and errors of the store.
 */
export async function loadBackup(
  bytes: AsyncIterable<Uint8Array>,
  store: StateStore,
  { privateKeyPem, onManifest }: LoadBackupOptions,
): Promise<LoadedBackup> {
  const receiver = await store.receive()
  try {
    const backup = await readBackup(bytes, {
      privateKeyPem,
      onState: (state) => judged(() => receiver.write(state)),
      ...(onManifest === undefined ? {} : { onManifest }),
    })
    await swapIn(receiver, backup.manifest)
    const state = await judged(() => loadState(store, new ClusterState()))
    requireCluster(state, backup)
    requireCounts(state, backup)
    return { ...backup, state }
  } finally {
    await receiver.abandon()
  }
}

/** A backup whose content was checked; the state itself is not kept. */
export interface CheckedBackup extends BackupReadResult {
  /** Inconsistent references, indexes and digests, limited to the number that is shown. */
  readonly findings: readonly IntegrityFinding[]
}

/**
 * Checks the same as `loadBackup`, but in memory only, and also checks that every reference leads
 * to a record.
 * @throws {BackupFault}
 */
export async function checkWholeBackup(
  bytes: AsyncIterable<Uint8Array>,
  parts: LoadBackupOptions,
): Promise<CheckedBackup> {
  const { state, ...backup } = await loadBackup(bytes, new MemoryStateStore(), parts)
  const scan = new IntegrityScan(state)
  while (scan.step());
  return { ...backup, findings: scan.findings }
}

async function swapIn(receiver: StoreReceiver, manifest: BackupManifest): Promise<void> {
  const mark = await judged(() => receiver.finish())
  for (const [name, value] of Object.entries(manifestPositionFields(mark))) {
    if (manifest[name as keyof BackupManifest] === value) continue
    throw damagedBackupFault(`the head of the backup does not belong to the state in it (${name})`)
  }
  await receiver.swap()
}

function requireCluster(state: State, { manifest }: BackupReadResult): void {
  if (state.clusterId === manifest.clusterId) return
  throw damagedBackupFault('the head of the backup is of another cluster than the state in it')
}

function requireCounts(state: State, { summary }: BackupReadResult): void {
  const counts: Record<string, number> = {}
  for (const [name, { entity, rows }] of state.tables) {
    if (entity.name === name && rows.size > 0) counts[name] = rows.size
  }
  if (canonicalJson(counts) === canonicalJson(summary.counts)) return
  throw damagedBackupFault('the end of the backup does not belong to the state in it')
}

/**
 * Runs a step that reads with the code of the store. Reports damaged bytes as a fault of the
 * backup, because the store itself is not damaged.
 */
async function judged<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    const isOfBytes = error instanceof StoreError && error.code === 'BAD_SNAPSHOT'
    if (!isOfBytes && !(error instanceof StateDamagedError)) throw error
    throw damagedBackupFault(`the state in the backup is damaged (${error.message})`, error)
  }
}
