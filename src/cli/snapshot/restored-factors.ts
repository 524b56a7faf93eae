import { BackupFault } from '../../backup/backup-fault.ts'
import { listFactors, decryptFactor } from '../../backup/restored-factors.ts'
import type { LoadedBackup } from '../../backup/load-backup.ts'
import type { ReencryptedFactor } from '../../api/backups/restore-control.ts'
import type { UnencryptedFactorBody } from '../../api/backups/restores-schema.ts'
import type { Mfa } from '../../entities/kinds/mfa.ts'
import type { FactorSecrets } from '../../pki/secrets/factor-secrets.ts'
import { sendToAdminSocket } from '../client/admin-socket.ts'

/** Maximum second factors in one request, because the size of a request is limited. */
const BATCH = 16
const FACTORS_PATH = '/fabric/v1/cluster/restore/factors'

/**
 * Re-encrypts the second factors in a backup for the target cluster, if they are encrypted with a
 * key that this cluster does not have: the key of another cluster, or one that this cluster has
 * rotated.
 * @throws {BackupFault} NO_SECRETS if the backup does not contain the key either.
 */
export async function reencryptFactorsForRunningCluster(
  data: string,
  live: LoadedBackup,
  backup: LoadedBackup,
): Promise<void> {
  const needed = factorsToSeal(live, backup)
  for (let at = 0; at < needed.length; at += BATCH) {
    const batch = needed.slice(at, at + BATCH)
    const factors = batch.map((mfa) => shown(mfa, opened(backup, mfa)))
    const sealed = (await sendToAdminSocket(data, {
      method: 'POST',
      path: FACTORS_PATH,
      body: { factors },
    })) as ReencryptedFactor[]
    batch.forEach((mfa, nth) => backup.state.put('mfa', { ...mfa, ...sealed[nth] }))
  }
}

function factorsToSeal({ state: live }: LoadedBackup, { state }: LoadedBackup): Mfa[] {
  const held = new Set(
    live.get('sharedSecret', 'factorKey')?.versions.map(({ version }) => version),
  )
  const isOther = live.clusterId !== state.clusterId
  return listFactors(state).filter(({ keyVersion }) => isOther || !held.has(keyVersion ?? 0))
}

function opened(backup: LoadedBackup, mfa: Mfa): FactorSecrets {
  const factor = decryptFactor(backup, mfa)
  if (factor !== null) return factor
  throw new BackupFault(
    'NO_SECRETS',
    `the second factor of identity ${mfa.identityId} is encrypted by a key that neither the cluster nor the backup holds; use a backup that was taken with its secrets, and --key`,
  )
}

function shown(
  { identityId, secretId, codesId }: Mfa,
  factor: FactorSecrets,
): UnencryptedFactorBody {
  const { secret, recoveryCodes } = factor
  return {
    identityId,
    secretId,
    codesId,
    recoveryCodes,
    secret: Buffer.from(secret).toString('base64'),
  }
}
