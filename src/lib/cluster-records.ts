import type { EntityRecord } from './entity-record.ts'

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

/** Record of kind `sharedSecret`, for folders that do not import descriptors. */
export interface SharedSecretRecord extends EntityRecord {
  /** Ascending versions. The last one is current; the others only verify or decrypt. */
  readonly versions: readonly SecretVersion[]
}

/** Record of kind `admission`: the key and store with which controller `id` may join. */
export interface AdmissionRecord extends EntityRecord {
  /** DER of the leaf's SubjectPublicKeyInfo, base64. */
  readonly publicKeySpki: string
  /** 32 hex digits. */
  readonly storeId: string
  /** host:port of its mesh, as the controller reported it on joining. */
  readonly address: string
  /** Certificate as issued on joining: leaf first, then the intermediates. */
  readonly certificatePem: string
  /** '' for the controllers that formed the cluster. */
  readonly ticketId: string
  readonly isVoter: boolean
}

/** Record of kind `joinTicket`: a single-use permission to join, stored as a digest. */
export interface JoinTicketRecord extends EntityRecord {
  /** Hex of the SHA-256 of the ticket's text. */
  readonly digest: string
  /** False: a controller that joins with it stays a learner. */
  readonly isVoter: boolean
  /** UTC ms of log time. */
  readonly expiresAt: number | null
  /** '' until it is used. */
  readonly usedByNodeId: string
}
