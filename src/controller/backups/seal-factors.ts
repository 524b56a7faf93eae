import { fieldProblem, Problem } from '../../lib/problems.ts'
import { sealFactor } from '../../pki/secrets/sealed-factor.ts'
import type { OpenFactor, SealedAgain } from '../../api/backups/restore-control.ts'
import type { BackupParts } from './take-backup.ts'

/** Factors in one request. */
const FACTORS_MAX = 64

/**
 * Encrypts second factors of a backup whose key this cluster does not hold. Whoever asks has the
 * key of the backup, and with it what is in them.
 * @throws {Problem} CLUSTER_NO_LEADER while no key is in force here; COULD_NOT_VALIDATE.
 */
export async function sealFactors(
  { cluster, secrets }: Pick<BackupParts, 'cluster' | 'secrets'>,
  factors: readonly OpenFactor[],
): Promise<readonly SealedAgain[]> {
  if (factors.length > FACTORS_MAX) {
    throw fieldProblem('factors', `must be at most ${FACTORS_MAX} second factors`)
  }
  await secrets.refresh()
  const key = secrets
    .held()
    .find(({ name, overlapEndsAtMs }) => name === 'factorKey' && overlapEndsAtMs === null)
  if (key === undefined) {
    throw new Problem('CLUSTER_NO_LEADER', {
      detail: 'this controller does not have the key of second factors yet; retry in a moment',
    })
  }
  const { clusterId } = cluster
  return factors.map(({ secret, recoveryCodes, ...whose }) => ({
    sealed: sealFactor(key.secret, { secret, recoveryCodes }, { clusterId, ...whose }),
    keyVersion: key.version,
  }))
}
