import { isIP } from 'node:net'

import { LEAF_LIFETIME_MS, type ValidityPeriod, validityStartingAt } from './authority.ts'
import {
  type Certificate,
  includesCertificate,
  findIssuingPath,
  parseCertificates,
} from '../certificate.ts'
import { isoTime } from '../../lib/text/format-time.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/**
 * An authority's certificate is due for renewal this long before it expires: when the first warning
 * about a long-lived certificate appears, because an operator must renew it manually.
 */
const AUTHORITY_RENEWAL_MS = 30 * DAY_MS

/**
 * Remaining lifetimes at which warnings of increasing severity begin. For a certificate with a
 * short total lifetime, the fraction of that lifetime applies instead; otherwise the warning would
 * begin on the first day. A controller renews its leaf from the cluster's issuing authority when a
 * third of the leaf's lifetime remains. All fractions are smaller, so a warning about such a leaf
 * means that its renewal has failed, or that the authority itself expires soon.
 */
const thresholds = [
  { level: 'critical', leftMs: DAY_MS, fraction: 1 / 16 },
  { level: 'urgent', leftMs: 7 * DAY_MS, fraction: 1 / 8 },
  { level: 'soon', leftMs: 30 * DAY_MS, fraction: 1 / 4 },
] as const

/**
 * `soon`, `urgent`, `critical`: at most 30, 7 and 1 days left; less for a certificate with a short
 * lifetime.
 */
export type ExpiryLevel = 'none' | 'soon' | 'urgent' | 'critical' | 'expired'

const LEVELS: readonly ExpiryLevel[] = ['none', 'soon', 'urgent', 'critical', 'expired']

export type CertificateKind = 'leaf' | 'issuing' | 'root'

interface CertificateLife {
  readonly kind: CertificateKind
  readonly certificate: Certificate
  /** Whole days; negative once the certificate has expired. */
  readonly daysLeft: number
  readonly level: ExpiryLevel
  readonly isNotYetValid: boolean
  /** Time from which the certificate should be renewed, UTC ms. */
  readonly renewAtMs: number
}

export interface CertificateHealth {
  readonly leaf: CertificateLife
  /** The issuer of the leaf, then the issuer of each previous certificate. */
  readonly authorities: readonly CertificateLife[]
  /**
   * Whether the leaf or one of these authorities is a trust anchor. Validity times do not matter
   * here.
   */
  readonly isTrusted: boolean
  /** The most urgent level of the leaf and these authorities. */
  readonly level: ExpiryLevel
}

/**
 * Remaining lifetimes of a leaf and its authorities.
 * @param options.chain leaf first, intermediates in any order.
 * @param options.nowMs UTC.
 */
export function certificateHealth(options: {
  readonly chain: readonly [Certificate, ...Certificate[]]
  readonly anchors: readonly Certificate[]
  readonly nowMs: number
}): CertificateHealth {
  const { chain, anchors, nowMs } = options
  const [own, ...issuers] = findIssuingPath(chain, anchors, nowMs)
  const leaf = certificateLifetime(own, nowMs)
  const authorities = issuers.map((issuer) => certificateLifetime(issuer, nowMs))
  return {
    leaf,
    authorities,
    isTrusted: [own, ...issuers].some((certificate) => includesCertificate(anchors, certificate)),
    level: worstLevel([leaf, ...authorities]),
  }
}

/** Remaining lifetime of a certificate, and how urgent its renewal is. */
export function certificateLifetime(certificate: Certificate, nowMs: number): CertificateLife {
  const { notBeforeMs, notAfterMs } = certificate
  const kind = kindOf(certificate)
  const lifetimeMs = Math.max(0, notAfterMs - notBeforeMs)
  const renewalMs = kind === 'leaf' ? lifetimeMs / 3 : AUTHORITY_RENEWAL_MS
  return {
    kind,
    certificate,
    daysLeft: Math.floor((notAfterMs - nowMs) / DAY_MS),
    level: levelOf(notAfterMs - nowMs, lifetimeMs),
    isNotYetValid: nowMs < notBeforeMs,
    renewAtMs: notAfterMs - renewalMs,
  }
}

function worstLevel(lives: readonly CertificateLife[]): ExpiryLevel {
  const worst = Math.max(0, ...lives.map(({ level }) => LEVELS.indexOf(level)))
  return LEVELS[worst] ?? 'expired'
}

function kindOf(certificate: Certificate): CertificateKind {
  if (!certificate.isAuthority) return 'leaf'
  return certificate.native.checkIssued(certificate.native) ? 'root' : 'issuing'
}

function levelOf(leftMs: number, lifetimeMs: number): ExpiryLevel {
  if (leftMs < 0) return 'expired'
  for (const { level, leftMs: atMs, fraction } of thresholds) {
    if (leftMs <= Math.min(atMs, lifetimeMs * fraction)) return level
  }
  return 'none'
}

const ends = {
  soon: 'expires within 30 days,',
  urgent: 'expires within 7 days,',
  critical: 'expires within a day,',
  expired: 'expired',
} as const

/**
 * One sentence for an operator: the certificate, its end time and the remedy.
 * @param isRenewedHere whether the controller renews this kind of leaf itself.
 * @returns null when no warning is due.
 */
export function expirySentence(life: CertificateLife, isRenewedHere: boolean): string | null {
  const { kind, certificate, level } = life
  if (level === 'none') return null
  const name = certificate.commonName ?? certificate.native.serialNumber
  const end = isoTime(certificate.notAfterMs)
  const what = {
    leaf: `the certificate of controller ${name}`,
    issuing: `the issuing authority ${JSON.stringify(name)}`,
    root: `the root certificate ${JSON.stringify(name)}`,
  }[kind]
  return `${what} ${ends[level]} at ${end}; ${remedyOf(life, isRenewedHere)}`
}

/** Like `expirySentence`, for a listener's server certificate from an external authority. */
export function serverExpirySentence(life: CertificateLife, path: string): string | null {
  const { certificate, level } = life
  if (level === 'none') return null
  const end = isoTime(certificate.notAfterMs)
  return `the server certificate ${path} ${ends[level]} at ${end}; have its issuer renew it, and replace its files`
}

function remedyOf({ kind, level }: CertificateLife, isRenewedHere: boolean): string {
  switch (kind) {
    case 'leaf':
      return isRenewedHere
        ? "automatic renewal failed; look for 'certificate renewal failed' in the logs of this controller, correct that, and run 'flotilla pki renew'"
        : 'have its issuer renew it for the same key, and replace the files of the section identity'
    case 'issuing':
      return level === 'expired'
        ? "the certificates that it issued are no longer accepted; run 'flotilla pki renew-issuing' with the root key"
        : "run 'flotilla pki renew-issuing' with the root key before that"
    case 'root':
      return 'plan a new root; every controller, router and client must have it in its CA file before this one expires'
  }
}

/** Reason why a controller renews its own leaf now. */
export type RenewalReason = 'due' | 'not-yet-valid' | 'new-authority' | 'missing-host' | 'asked-for'

/**
 * Decides whether to renew a leaf that the cluster's issuing authority issued.
 * @param options.issuingPem the current authority, its own certificate first.
 * @param options.hosts hosts that the leaf must contain.
 * @returns null if the leaf is complete and not due yet, or if a new leaf would not expire much
 * later.
 */
export function renewalReason(options: {
  readonly chain: readonly [Certificate, ...Certificate[]]
  readonly issuingPem: string
  readonly hosts: readonly string[]
  readonly nowMs: number
}): RenewalReason | null {
  const { chain, issuingPem, hosts, nowMs } = options
  const [leaf] = chain
  const [issuing] = parseCertificates(issuingPem)
  const life = certificateLifetime(leaf, nowMs)
  if (missingHosts(leaf, hosts).length > 0) return 'missing-host'
  if (life.isNotYetValid) return 'not-yet-valid'
  if (!isIssuedUnder(chain, issuing)) return 'new-authority'
  if (nowMs < life.renewAtMs) return null
  // Renews only if the new leaf expires clearly later. Near the end of the authority's validity,
  // each renewal would gain less time than the previous one, and the controller would renew
  // endlessly.
  const gainedMs = limitValidity(issuing, nowMs, LEAF_LIFETIME_MS).notAfterMs - leaf.notAfterMs
  const lifetimeMs = leaf.notAfterMs - leaf.notBeforeMs
  return gainedMs > lifetimeMs / 10 ? 'due' : null
}

/**
 * Whether the authority's key signed the leaf, and the leaf's chain contains exactly the current
 * certificate of this authority. The authority may have an older certificate with the same key. A
 * self-signed authority need not be in the chain.
 */
function isIssuedUnder(
  [leaf, ...others]: readonly [Certificate, ...Certificate[]],
  issuing: Certificate,
): boolean {
  if (!leaf.native.checkIssued(issuing.native)) return false
  if (!leaf.native.verify(issuing.native.publicKey)) return false
  return includesCertificate(others, issuing) || issuing.native.checkIssued(issuing.native)
}

/**
 * Whether an authority with this name issued the leaf. A cluster keeps the name when its issuing
 * authority gets a new key, so that members still recognize their own leaves.
 */
export function isIssuerName(leaf: Certificate, issuingPem: string): boolean {
  const [issuing] = parseCertificates(issuingPem)
  return leaf.native.issuer === issuing.native.subject
}

/**
 * Hosts that clients cannot verify with this leaf, because it does not contain them.
 * @param hosts DNS names and IP addresses.
 */
export function missingHosts(leaf: Certificate, hosts: readonly string[]): string[] {
  // Calls a different function for each kind of host, because checkHost throws for an IP address
  // and checkIP for a DNS name.
  const names = (host: string): boolean =>
    (isIP(host) === 0 ? leaf.native.checkHost(host) : leaf.native.checkIP(host)) !== undefined
  return hosts.filter((host) => !names(host))
}

/**
 * The requested validity period, limited to the issuer's period: verifiers check the times of all
 * certificates in the chain.
 */
export function limitValidity(
  issuer: Certificate,
  nowMs: number,
  lifetimeMs: number,
): ValidityPeriod {
  const { notBeforeMs, notAfterMs } = validityStartingAt(nowMs, lifetimeMs)
  return {
    notBeforeMs: Math.max(notBeforeMs, issuer.notBeforeMs),
    notAfterMs: Math.min(notAfterMs, issuer.notAfterMs),
  }
}
