import type { BackupManifest, BackupSummary } from '../../backup/manifest.ts'
import { kindPlural } from '../../entities/registry.ts'
import { printableValue } from '../../lib/text/terminal-text.ts'
import type { AdminSocketError } from '../client/admin-socket.ts'
import { isoTime } from '../../lib/text/format-time.ts'

/**
 * Kinds whose counts help an operator to recognize a network. The JSON output contains all kinds.
 */
const SHOWN_KINDS = ['identity', 'service', 'servicePolicy', 'router'] as const

export function recordCountsText({ counts }: BackupSummary): string {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const shown = SHOWN_KINDS.map((kind) => `${counts[kind] ?? 0} ${kindPlural(kind)}`)
  return `${total} records (${shown.join(', ')})`
}

/** One line about the origin of a backup. */
export function backupOriginText(manifest: BackupManifest): string {
  const { clusterId, generation, index, takenAtMs, controllerId, version, featureLevel } =
    printableValue(manifest)
  return `cluster ${clusterId}, generation ${generation}, index ${index}, feature level ${featureLevel}; taken ${isoTime(takenAtMs)} by ${controllerId} (${version})`
}

/**
 * The manifest of a backup for scripts, without the CA certificates and the encrypted keys that the
 * file contains.
 */
export function manifestJson({ caPem: _ca, encryption, ...shown }: BackupManifest): object {
  return { ...shown, recipientSha256: encryption?.recipientSha256 ?? null }
}

/** Log position of a backup, for scripts. */
export type BackupPosition = Pick<BackupManifest, 'clusterId' | 'index' | 'takenAtMs'>

export function backupPositionJson({
  clusterId,
  index,
  takenAtMs,
}: BackupManifest): BackupPosition {
  return { clusterId, index, takenAtMs }
}

/**
 * Adds a hint to the error message if the cluster has no leader: the user can request a backup of
 * the state that this controller has applied.
 */
export function addStaleBackupHint({ code, message }: AdminSocketError): string {
  return code === 'CLUSTER_NO_LEADER'
    ? `${message}; or pass --stale to use the state of this controller`
    : message
}
