import { create, toBinary } from '@bufbuild/protobuf'

import { ClusterActionSchema, CommandKind, CommandSchema } from '../../proto/gen/command_pb.ts'
import { ConfigurationSchema, MemberSchema } from '../../proto/gen/membership_pb.ts'
import { convertToNewCluster } from '../fsm/restored-state.ts'
import type { State } from '../fsm/records/state.ts'
import { currentStorePosition } from '../fsm/records/write-behind.ts'
import type { CertificateWithKey } from '../pki/authority/authority.ts'
import { parseCertificates } from '../pki/certificate.ts'
import { createSystemActor } from '../ports/actor.ts'
import { commandFeatureLevel } from '../ports/feature-level.ts'
import type { Entry, Position } from '../raft/types.ts'
import type { DataIdentity } from '../store/log/data-identity.ts'
import { LevelStateStore } from '../store/state/level-state-store.ts'
import type { InitialLog } from '../store/folder/create-data-folder.ts'
import { loadBackup, type LoadedBackup, type LoadBackupOptions } from './load-backup.ts'
import { reencryptFactorsForNewCluster } from './restored-factors.ts'
import { issuingAuthorityFromBackup, secretsForRestoredCluster } from './restored-secrets.ts'

/** Number of bytes after which incoming records are synced. */
const RECEIVE_BATCH_BYTES = 8 * 1024 * 1024

/** The first controller of the restored cluster. */
export interface RestoreTarget extends DataIdentity {
  /** host:port of the controller's mesh listener. */
  readonly address: string
  readonly timeMs: number
  readonly freeBytesMin: number
  /** Issues the controller's certificate and key with the authority in the backup. */
  readonly leaf: (issuing: CertificateWithKey, backup: LoadedBackup) => Promise<CertificateWithKey>
}

/**
 * Fills a new data folder (`createDataFolderWithState`) with the state in a backup, to start a new
 * cluster with one controller.
 * @throws {BackupFault} and errors of the store.
 */
export async function fillDataFolderFromBackup(
  folder: string,
  bytes: AsyncIterable<Uint8Array>,
  parts: LoadBackupOptions,
  first: RestoreTarget,
): Promise<InitialLog & { readonly backup: LoadedBackup }> {
  const { freeBytesMin } = first
  const options = { freeBytesMin, receiveBatchBytes: RECEIVE_BATCH_BYTES }
  const store = await LevelStateStore.open(folder, options)
  try {
    const backup = await loadBackup(bytes, store, parts)
    const base = await beginAnew(backup, first)
    await store.write(backup.state.takeDirty(), currentStorePosition(backup.state))
    return { base, entries: [restoredEntry(base, backup, first)], backup }
  } finally {
    await store.close()
  }
}

async function beginAnew(backup: LoadedBackup, first: RestoreTarget): Promise<Position> {
  const { state, secrets } = backup
  const { clusterId, nodeId, storeId, address, timeMs } = first
  const leaf = await first.leaf(issuingAuthorityFromBackup(state, secrets), backup)
  const [certificate] = parseCertificates(leaf.certificatePem)
  const spki = certificate.native.publicKey.export({ type: 'spki', format: 'der' })
  const publicKeySpki = Uint8Array.from(spki)
  const member = create(MemberSchema, {
    id: nodeId,
    voter: true,
    address,
    storeId,
    publicKeySha256: certificate.publicKeySha256,
  })
  reencryptFactorsForNewCluster(backup, clusterId)
  return convertToNewCluster(state, {
    clusterId,
    timeMs,
    configuration: toBinary(
      ConfigurationSchema,
      create(ConfigurationSchema, { members: [member] }),
    ),
    admission: {
      id: nodeId,
      publicKeySpki: spki.toString('base64'),
      storeId: Buffer.from(storeId).toString('hex'),
      address,
      certificatePem: leaf.certificatePem,
      ticketId: '',
      isVoter: true,
    },
    secrets: await secretsForRestoredCluster(state, secrets, { clusterId, nodeId, publicKeySpki }),
  })
}

/**
 * Entry for the new cluster's audit log; it names the backup from which the cluster was restored.
 */
function restoredEntry(
  base: Position,
  { manifest, state }: LoadedBackup & { readonly state: State },
  { nodeId }: RestoreTarget,
): Entry {
  const { clusterId, index, takenAtMs } = manifest
  const reason = `backup of cluster ${clusterId} at index ${index}, taken ${new Date(takenAtMs).toISOString()}`
  const message = { action: 'cluster-restore', target: nodeId, outcome: 'done', reason }
  const command = create(CommandSchema, {
    kind: CommandKind.CLUSTER_ACTION,
    level: commandFeatureLevel(CommandKind.CLUSTER_ACTION),
    actor: createSystemActor({ name: 'restore' }),
    payload: toBinary(ClusterActionSchema, create(ClusterActionSchema, message)),
  })
  return {
    index: base.index + 1,
    term: base.term,
    timeMs: state.logTimeMs,
    type: 'command',
    data: toBinary(CommandSchema, command),
  }
}
