/** The secrets that controllers share, by the id of their record. */
export const sharedSecretNames = ['clusterKey', 'factorKey', 'issuingAuthority'] as const
export type SharedSecretName = (typeof sharedSecretNames)[number]

/** Whether it is 32 random bytes without a certificate. */
export function isRandomKey(name: SharedSecretName): boolean {
  return name === 'clusterKey' || name === 'factorKey'
}

/**
 * Whether every controller is to have a version. Those of the factor key stay until nothing is
 * encrypted by them any more, whatever their overlap: without one, second factors would be lost.
 */
export function isHonoured(
  name: SharedSecretName,
  { overlapEndsAt }: Pick<SecretVersion, 'overlapEndsAt'>,
  logTimeMs: number,
): boolean {
  return name === 'factorKey' || overlapEndsAt === null || overlapEndsAt > logTimeMs
}

/** `left`, `compromised`: a controller that could open it has gone since, in peace or not. */
export type SecretExposure = 'none' | 'left' | 'compromised'

/** A type, not an interface: only so is it assignable to JSON. */
export type SecretVersion = {
  readonly version: number
  /** PEM of the public part: own certificate, then the intermediates; '' when it has none. */
  readonly certificatePem: string
  /** Log time, UTC ms. */
  readonly createdAt: number
  /** Log time; null while it is the newest. */
  readonly overlapEndsAt: number | null
  readonly exposure: SecretExposure
  /** Controller id to compact JWE; sorted by id. */
  readonly wrapped: Readonly<Record<string, string>>
}
