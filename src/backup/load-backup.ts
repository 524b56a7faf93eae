import { loadState, StateDamaged } from '../fsm/records/load.ts'
import { type Finding, StateScan } from '../fsm/cluster/integrity-scan.ts'
import type { State } from '../fsm/records/state.ts'
import { canonicalJson } from '../lib/text/canonical-json.ts'
import type { StateStore, StoreReceiver } from '../ports/state-store.ts'
import { StoreError } from '../store/errors.ts'
import { MemoryStateStore } from '../store/state/memory-state-store.ts'
import { damaged } from './fault.ts'
import { type BackupManifest, manifestOfMark } from './manifest.ts'
import { readBackup, type ReadBackup } from './read-backup.ts'
import { ClusterState } from '../fsm/access/cluster-state.ts'

export interface LoadingParts {
  readonly privateKeyPem: string | null
  readonly onManifest?: (manifest: BackupManifest) => void
}

export interface LoadedBackup extends ReadBackup {
  readonly state: ClusterState
}

/**
 * Brings the state of a backup into an empty store, and all of it into memory: every checksum,
 * record and digest is judged.
 * @throws {BackupFault} and what the store throws of itself.
 */
export async function loadBackup(
  bytes: AsyncIterable<Uint8Array>,
  store: StateStore,
  { privateKeyPem, onManifest }: LoadingParts,
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

export interface CheckedBackup extends ReadBackup {
  /** References, indexes and digests that do not fit; the most that are shown. */
  readonly findings: readonly Finding[]
}

/**
 * Does as `loadBackup`, in memory alone, and holds every reference to its record.
 * @throws {BackupFault}
 */
export async function checkWholeBackup(
  bytes: AsyncIterable<Uint8Array>,
  parts: LoadingParts,
): Promise<CheckedBackup> {
  const { state, ...backup } = await loadBackup(bytes, new MemoryStateStore(), parts)
  const scan = new StateScan(state)
  while (scan.step());
  return { ...backup, findings: scan.findings }
}

async function swapIn(receiver: StoreReceiver, manifest: BackupManifest): Promise<void> {
  const mark = await judged(() => receiver.finish())
  for (const [name, value] of Object.entries(manifestOfMark(mark))) {
    if (manifest[name as keyof BackupManifest] === value) continue
    throw damaged(`the head of the backup does not belong to the state in it (${name})`)
  }
  await receiver.swap()
}

function requireCluster(state: State, { manifest }: ReadBackup): void {
  if (state.clusterId === manifest.clusterId) return
  throw damaged('the head of the backup is of another cluster than the state in it')
}

function requireCounts(state: State, { summary }: ReadBackup): void {
  const counts: Record<string, number> = {}
  for (const [name, { entity, rows }] of state.tables) {
    if (entity.name === name && rows.size > 0) counts[name] = rows.size
  }
  if (canonicalJson(counts) === canonicalJson(summary.counts)) return
  throw damaged('the end of the backup does not belong to the state in it')
}

/**
 * Makes what is wrong with the bytes a fault of the backup, not of the store that they were meant
 * for.
 */
async function judged<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    const isOfBytes = error instanceof StoreError && error.code === 'BAD_SNAPSHOT'
    if (!isOfBytes && !(error instanceof StateDamaged)) throw error
    throw damaged(`the state in the backup is damaged (${error.message})`, error)
  }
}
