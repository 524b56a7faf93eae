import type { EntityRecord } from './entity-record.ts'

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

/** Kind `sharedSecret`, as rooms that know no descriptors read it. */
export interface SharedSecretRecord extends EntityRecord {
  /** Ascending; the last one is in force, those before it only verify or decrypt. */
  readonly versions: readonly SecretVersion[]
}

/** Kind `admission`: which key may come in as controller `id`, with which store. */
export interface AdmissionRecord extends EntityRecord {
  /** DER of the leaf's SubjectPublicKeyInfo, base64. */
  readonly publicKeySpki: string
  /** 32 hex digits. */
  readonly storeId: string
  /** host:port of its mesh, as it was told on joining. */
  readonly address: string
  /** Certificate as issued on joining: leaf first, then the intermediates. */
  readonly certificatePem: string
  /** '' for the controllers that the cluster was formed with. */
  readonly ticketId: string
  readonly isVoter: boolean
}

/** Kind `joinTicket`: a single-use permission to join, by its digest. */
export interface JoinTicketRecord extends EntityRecord {
  /** Hex of the SHA-256 of the ticket's text. */
  readonly digest: string
  /** False: who joins by it stays a learner. */
  readonly isVoter: boolean
  /** UTC ms of log time. */
  readonly expiresAt: number | null
  /** '' until it is used. */
  readonly usedByNodeId: string
}
