import type { Mfa } from '../entities/kinds/mfa.ts'
import type { State } from '../fsm/records/state.ts'
import {
  type FactorSecrets,
  decryptFactorSecrets,
  encryptFactorSecrets,
} from '../pki/secrets/factor-secrets.ts'
import type { BackupSecret } from './content.ts'

/** The parts of a backup that are needed to decrypt its second factors. */
interface FactorSource {
  readonly state: State
  readonly secrets: readonly BackupSecret[] | null
}

/** All second factors of a state. */
export function listFactors(state: State): Mfa[] {
  return [...state.table('mfa').rows.values()].map(({ record }) => record)
}

/**
 * Decrypts a second factor; null when the backup does not contain the key that encrypted it, or the
 * factor was modified.
 */
export function decryptFactor({ state, secrets }: FactorSource, mfa: Mfa): FactorSecrets | null {
  const key = keyOf(secrets, mfa)
  return key === undefined
    ? null
    : decryptFactorSecrets(key, mfa.sealed, contextOf(mfa, state.clusterId))
}

/**
 * Re-encrypts the second factors for the new cluster, because their authenticated data includes the
 * cluster id. A factor that cannot be decrypted is left unchanged.
 */
export function reencryptFactorsForNewCluster(source: FactorSource, clusterId: string): void {
  for (const mfa of listFactors(source.state)) {
    const factor = decryptFactor(source, mfa)
    const key = keyOf(source.secrets, mfa)
    if (factor === null || key === undefined) continue
    source.state.put('mfa', {
      ...mfa,
      sealed: encryptFactorSecrets(key, factor, contextOf(mfa, clusterId)),
    })
  }
}

function keyOf(
  secrets: readonly BackupSecret[] | null,
  { keyVersion }: Mfa,
): Uint8Array | undefined {
  return secrets?.find(({ name, version }) => name === 'factorKey' && version === keyVersion)
    ?.secret
}

function contextOf({ identityId, secretId, codesId }: Mfa, clusterId: string) {
  return { clusterId, identityId, secretId, codesId }
}
