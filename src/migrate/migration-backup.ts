import { randomBytes } from 'node:crypto'
import { create, toBinary } from '@bufbuild/protobuf'

import { ConfigurationSchema, MemberSchema } from '../../proto/gen/membership_pb.ts'
import type { BackupRecipient } from '../backup/encryption.ts'
import type { BackupSecret } from '../backup/content.ts'
import { MIGRATED_GENERATION } from '../backup/manifest.ts'
import { BackupWriter } from '../backup/write-backup.ts'
import type { SecretVersion, SharedSecretName } from '../lib/shared-secrets.ts'
import { newOpaqueId } from '../lib/random.ts'
import { newClusterKey } from '../pki/secrets/cluster-key.ts'
import type { Migration } from './migration.ts'
import { createStateSnapshot } from './state-snapshot.ts'

const SECRET_VERSION = 1
/**
 * Placeholder for the member's address, which is never used, because a restore replaces the
 * members.
 */
const NO_ADDRESS = 'localhost:1'

export interface MigrationBackupOptions {
  readonly recipient: BackupRecipient | null
  readonly nowMs: number
  /** Version of the program that writes the backup. */
  readonly version: string
}

/**
 * Begins a backup of the new network, in the format of a controller's backup. The returned writer
 * yields the bytes of the backup.
 */
export async function beginMigrationBackup(
  migration: Migration,
  { recipient, nowMs, version }: MigrationBackupOptions,
): Promise<BackupWriter> {
  const { state, clusterId, authorities, factorKey } = migration
  const { issuing, trustDomain, caPem, controllers } = authorities
  const members = controllers.map(({ id }) => id).sort()
  const [controllerId = ''] = members
  const secrets: Record<SharedSecretName, Uint8Array> = {
    clusterKey: newClusterKey(),
    factorKey,
    issuingAuthority: Uint8Array.from(Buffer.from(issuing.privateKeyPem, 'utf8')),
  }
  for (const name of ['clusterKey', 'factorKey', 'issuingAuthority'] as const) {
    const certificatePem = name === 'issuingAuthority' ? issuing.certificatePem : ''
    const versions: readonly SecretVersion[] = [
      {
        version: SECRET_VERSION,
        certificatePem,
        createdAt: nowMs,
        overlapEndsAt: null,
        exposure: 'none',
        wrapped: {},
      },
    ]
    const times = { createdAt: nowMs, updatedAt: nowMs, revision: 1 }
    state.put('sharedSecret', { id: name, versions, ...times })
  }
  state.clusterId = clusterId
  state.position = { term: 1, index: 2 }
  state.logTimeMs = nowMs
  state.configuration = configurationOf(controllerId)
  return await BackupWriter.begin({
    origin: {
      clusterId,
      trustDomain,
      generation: MIGRATED_GENERATION,
      takenAtMs: nowMs,
      controllerId,
      version,
      members,
      caPem,
    },
    snapshot: createStateSnapshot(state),
    secrets: Object.entries(secrets).map(([name, secret]): BackupSecret => {
      return { name: name as SharedSecretName, version: SECRET_VERSION, secret }
    }),
    recipient,
  })
}

/**
 * An encoded Raft configuration with one voter, because every state must contain a configuration.
 */
function configurationOf(id: string): Uint8Array {
  const member = create(MemberSchema, {
    id,
    voter: true,
    address: NO_ADDRESS,
    storeId: newOpaqueId(),
    publicKeySha256: Uint8Array.from(randomBytes(32)),
  })
  return toBinary(ConfigurationSchema, create(ConfigurationSchema, { members: [member] }))
}
