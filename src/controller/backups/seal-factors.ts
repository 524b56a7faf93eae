import { fieldProblem, Problem } from '../../lib/problems.ts'
import { sealFactor } from '../../pki/sealed-factor.ts'
import type { Factor, FactorContext } from '../../pki/sealed-factor.ts'
import type { BackupParts } from './take-backup.ts'

/** A second factor as a restore brings it, encrypted for this cluster. */
export interface SealedAgain {
  readonly sealed: string
  readonly keyVersion: number
}

/** Of one request. */
const FACTORS_MAX = 64

/**
 * Encrypts second factors of a backup whose key this cluster does not hold. Whoever asks has the key of the backup, and with it
 * what is in them.
 * @throws {Problem} CLUSTER_NO_LEADER while no key is in force here; COULD_NOT_VALIDATE.
 */
export async function sealFactors(
  { cluster, secrets }: Pick<BackupParts, 'cluster' | 'secrets'>,
  params: Readonly<Record<string, unknown>>,
): Promise<readonly SealedAgain[]> {
  const { factors } = params
  if (!Array.isArray(factors) || factors.length > FACTORS_MAX) {
    throw fieldProblem('factors', `must be at most ${FACTORS_MAX} second factors`)
  }
  const given = factors.map((one) => givenFactor(one, cluster.clusterId))
  await secrets.refresh()
  const key = secrets
    .held()
    .find(({ name, overlapEndsAtMs }) => name === 'factorKey' && overlapEndsAtMs === null)
  if (key === undefined) {
    throw new Problem('CLUSTER_NO_LEADER', {
      detail: 'this controller does not hold the key of second factors yet; try again in a moment',
    })
  }
  return given.map(({ factor, context }) => ({
    sealed: sealFactor(key.secret, factor, context),
    keyVersion: key.version,
  }))
}

function givenFactor(
  value: unknown,
  clusterId: string,
): { readonly factor: Factor; readonly context: FactorContext } {
  const one = { ...(value as Partial<Record<string, unknown>> | null) }
  const { identityId, secretId, codesId, secret, recoveryCodes } = one
  const texts = [identityId, secretId, codesId, secret]
  const isUsable =
    texts.every((text) => typeof text === 'string') &&
    Array.isArray(recoveryCodes) &&
    recoveryCodes.every((code) => typeof code === 'string')
  if (!isUsable) throw fieldProblem('factors', 'holds what is no second factor')
  return {
    factor: {
      secret: Uint8Array.from(Buffer.from(String(secret), 'base64')),
      recoveryCodes: recoveryCodes as string[],
    },
    context: {
      ...{ clusterId, identityId: String(identityId) },
      ...{ secretId: String(secretId), codesId: String(codesId) },
    },
  }
}
