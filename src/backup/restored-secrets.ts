import type { State } from '../fsm/records/state.ts'
import {
  type SecretVersion,
  type SharedSecretName,
  sharedSecretNames,
} from '../lib/shared-secrets.ts'
import type { CertificateWithKey } from '../pki/authority/authority.ts'
import { newClusterKey } from '../pki/secrets/cluster-key.ts'
import { wrapSecret } from '../pki/secrets/wrapped-secret.ts'
import type { BackupSecret } from './content.ts'
import { BackupFault } from './backup-fault.ts'

/** The controller for which the new cluster's secrets are wrapped. */
interface SecretHolder {
  readonly clusterId: string
  readonly nodeId: string
  /** SubjectPublicKeyInfo of the controller's public key in DER. */
  readonly publicKeySpki: Uint8Array
}

/**
 * @returns the newest issuing authority in the backup.
 * @throws {BackupFault} NO_SECRETS.
 */
export function issuingAuthorityFromBackup(
  state: State,
  secrets: readonly BackupSecret[] | null,
): CertificateWithKey {
  const inForce = versionsOf(state, 'issuingAuthority').at(-1)
  const found = secrets?.find(
    ({ name, version }) => name === 'issuingAuthority' && version === inForce?.version,
  )
  if (inForce !== undefined && found !== undefined) {
    const privateKeyPem = Buffer.from(found.secret).toString('utf8')
    return { certificatePem: inForce.certificatePem, privateKeyPem }
  }
  throw new BackupFault(
    'NO_SECRETS',
    'the backup has no secrets, which a new cluster needs; use a backup taken with --recipient or --plaintext',
  )
}

/**
 * The shared secrets of the new cluster. The cluster key is newly generated: session tokens are
 * derived from it, and the new cluster must not accept tokens from before the restore.
 * @throws {BackupFault} NO_SECRETS when a key that decrypts second factors is missing.
 */
export async function secretsForRestoredCluster(
  state: State,
  secrets: readonly BackupSecret[] | null,
  holder: SecretHolder,
): Promise<Readonly<Record<SharedSecretName, readonly SecretVersion[]>>> {
  const made: Partial<Record<SharedSecretName, readonly SecretVersion[]>> = {}
  for (const name of sharedSecretNames) {
    made[name] =
      name === 'clusterKey'
        ? [await newVersion(state, holder)]
        : await wrappedAgain(state, name, secrets ?? [], holder)
  }
  return made as Record<SharedSecretName, readonly SecretVersion[]>
}

function versionsOf(state: State, name: SharedSecretName): readonly SecretVersion[] {
  return state.get('sharedSecret', name)?.versions ?? []
}

/**
 * A new version of the cluster key. The version's number is higher than every number in the backup,
 * so that controllers reject tokens of an earlier key by their version.
 */
async function newVersion(state: State, holder: SecretHolder): Promise<SecretVersion> {
  const version = (versionsOf(state, 'clusterKey').at(-1)?.version ?? 0) + 1
  return {
    version,
    certificatePem: '',
    createdAt: state.logTimeMs,
    overlapEndsAt: null,
    exposure: 'none',
    wrapped: await wrapFor(holder, { name: 'clusterKey', version, secret: newClusterKey() }),
  }
}

async function wrappedAgain(
  state: State,
  name: SharedSecretName,
  secrets: readonly BackupSecret[],
  holder: SecretHolder,
): Promise<readonly SecretVersion[]> {
  const kept: SecretVersion[] = []
  for (const version of versionsOf(state, name)) {
    const found = secrets.find((one) => one.name === name && one.version === version.version)
    if (found !== undefined) kept.push({ ...version, wrapped: await wrapFor(holder, found) })
    else if (isInUse(state, name, version)) throw missing(version)
  }
  return kept
}

async function wrapFor(
  { clusterId, nodeId, publicKeySpki }: SecretHolder,
  { name, version, secret }: BackupSecret,
): Promise<Readonly<Record<string, string>>> {
  const context = { clusterId, name, version, nodeId }
  return { [nodeId]: await wrapSecret(secret, publicKeySpki, context) }
}

function isInUse(state: State, name: SharedSecretName, { version }: SecretVersion): boolean {
  if (name !== 'factorKey') return false
  return state.table('mfa').indexes.ids('keyVersion', String(version)).size > 0
}

function missing({ version }: SecretVersion): BackupFault {
  return new BackupFault(
    'NO_SECRETS',
    `the backup lacks version ${version} of the key of second factors, by which some in it are encrypted; use another backup`,
  )
}
