/** Names of the secrets that controllers share, which are the ids of their records. */
export const sharedSecretNames = ['clusterKey', 'factorKey', 'issuingAuthority'] as const
export type SharedSecretName = (typeof sharedSecretNames)[number]

/** Whether the secret is 32 random bytes without a certificate. */
export function isRandomKey(name: SharedSecretName): boolean {
  return name === 'clusterKey' || name === 'factorKey'
}

/**
 * Whether every controller should hold a version of a secret. Versions of the factor key stay until
 * no record is encrypted with them, regardless of their overlap: without one, second factors would
 * be lost.
 */
export function isVersionNeeded(
  name: SharedSecretName,
  { overlapEndsAt }: Pick<SecretVersion, 'overlapEndsAt'>,
  logTimeMs: number,
): boolean {
  return name === 'factorKey' || overlapEndsAt === null || overlapEndsAt > logTimeMs
}

/**
 * Whether a controller that could decrypt the secret has left the cluster (`left`) or was removed
 * as compromised (`compromised`).
 */
export type SecretExposure = 'none' | 'left' | 'compromised'

/** A type rather than an interface, because only a type is assignable to JSON. */
export type SecretVersion = {
  readonly version: number
  /** PEM of the public part: the certificate, then the intermediates; '' when it has none. */
  readonly certificatePem: string
  /** Log time, UTC ms. */
  readonly createdAt: number
  /** Log time, UTC ms; null while it is the newest version. */
  readonly overlapEndsAt: number | null
  readonly exposure: SecretExposure
  /** Controller id to compact JWE; sorted by id. */
  readonly wrapped: Readonly<Record<string, string>>
}
