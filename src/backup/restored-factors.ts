import type { Mfa } from '../entities/kinds/mfa.ts'
import type { State } from '../fsm/records/state.ts'
import { type Factor, openFactor, sealFactor } from '../pki/secrets/sealed-factor.ts'
import type { BackupSecret } from './content.ts'

/** Parts of a backup that its second factors are decrypted by. */
export interface FactorSource {
  readonly state: State
  readonly secrets: readonly BackupSecret[] | null
}

/** Every second factor of a state. */
export function factorsOf(state: State): Mfa[] {
  return [...state.table('mfa').rows.values()].map(({ record }) => record)
}

/** null: the backup does not hold the key that it is encrypted by. */
export function openedFactor({ state, secrets }: FactorSource, mfa: Mfa): Factor | null {
  const key = keyOf(secrets, mfa)
  return key === undefined ? null : openFactor(key, mfa.sealed, contextOf(mfa, state.clusterId))
}

/**
 * Encrypts second factors anew for the cluster that a backup becomes: its id is part of what each
 * is authenticated with, so that no controller could decrypt them as they are. One that nobody can
 * decrypt stays as it is.
 */
export function sealForCluster(source: FactorSource, clusterId: string): void {
  for (const mfa of factorsOf(source.state)) {
    const factor = openedFactor(source, mfa)
    const key = keyOf(source.secrets, mfa)
    if (factor === null || key === undefined) continue
    source.state.put('mfa', { ...mfa, sealed: sealFactor(key, factor, contextOf(mfa, clusterId)) })
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
