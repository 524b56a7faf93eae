/** Names of the secrets that controllers share, which are the ids of their records. */
export const sharedSecretNames = ['clusterKey', 'factorKey', 'issuingAuthority'] as const
export type SharedSecretName = (typeof sharedSecretNames)[number]

/** Whether the secret consists of 32 random bytes, without a certificate. */
export function isRandomKey(name: SharedSecretName): boolean {
  return name === 'clusterKey' || name === 'factorKey'
}

/**
 * Whether every controller should have this version of a secret. All versions of the factor key
 * count as needed, even after their overlap, because records may still be encrypted with one of
 * them: without it, second factors would be lost.
 */
export function isSecretVersionNeeded(
  name: SharedSecretName,
  { overlapEndsAt }: Pick<SecretVersion, 'overlapEndsAt'>,
  logTimeMs: number,
): boolean {
  return name === 'factorKey' || overlapEndsAt === null || overlapEndsAt > logTimeMs
}

/**
 * Whether a controller that could decrypt the secret has left the cluster (`left`), or an operator
 * removed it as compromised (`compromised`).
 */
export type SecretExposure = 'none' | 'left' | 'compromised'

/** A type alias, not an interface, because only a type alias is assignable to JSON. */
export type SecretVersion = {
  readonly version: number
  /**
   * PEM of the public part: the certificate, then the intermediates; '' when the secret has no
   * certificate.
   */
  readonly certificatePem: string
  /** Log time, UTC ms. */
  readonly createdAt: number
  /**
   * Log time at which the overlap with the next version ends, UTC ms; null for the newest version.
   */
  readonly overlapEndsAt: number | null
  readonly exposure: SecretExposure
  /** Wrapped secret (compact JWE) by controller id; sorted by id. */
  readonly wrapped: Readonly<Record<string, string>>
}
