import type { KeyObject } from 'node:crypto'

import { DerError } from '../asn1/der.ts'
import { formatDistinguishedName } from '../asn1/distinguished-name.ts'
import { readBasicConstraints, keyUsageBit, readKeyUsage } from '../asn1/extensions.ts'
import { isAllowedKey, inspectKey, ALLOWED_KEYS_TEXT } from '../asn1/key-info.ts'
import { extensionOids } from '../asn1/object-identifiers.ts'
import { isSignedBy, readSignatureAlgorithm, type SignatureAlgorithm } from '../asn1/signature.ts'
import { type Certificate } from '../certificate.ts'
import {
  nameConstraintFault,
  type ConstraintBudget,
  readNameConstraints,
} from './name-constraints.ts'
import { permitsPurpose } from './key-purposes.ts'
import { isoTime } from '../../lib/text/format-time.ts'

/** Limits of the search for one chain; a chain that needs more is refused. */
export const clientChainLimits = {
  /** Maximum certificates in one path, including the leaf and the anchor. */
  depthMax: 10,
  /** Maximum certificates presented by a client. */
  presentedMax: 16,
  /** Maximum signatures verified in one search. */
  signaturesMax: 64,
  /** Maximum authorities tried, in all paths together. */
  stepsMax: 256,
  /** Maximum comparisons of a name with a name constraint. */
  comparisonsMax: 20_000,
} as const

/**
 * Certificates of a connection: the leaf first, then the other certificates that the client
 * presented.
 */
export type PresentedCertificates = readonly [Certificate, ...Certificate[]]

export interface ClientChainInput {
  /** The presented chain: leaf first, intermediates in any order. */
  readonly chain: PresentedCertificates
  /**
   * Trust anchors, tried in this order. Each anchor must be a CA certificate but need not be
   * self-signed.
   */
  readonly anchors: readonly Certificate[]
  /** Time at which the certificates must be valid, UTC ms. */
  readonly nowMs: number
  /** If true, the extended key usage of every certificate in the path must allow clientAuth. */
  readonly requiresClientAuth: boolean
  /**
   * `reported`: a leaf outside its validity period is accepted, and the result's `leafTime` reports
   * this. Authorities must always be within their validity period.
   */
  readonly leafTime: 'enforced' | 'reported'
}

export type LeafValidity = 'valid' | 'expired' | 'not-yet-valid'

export type ClientChainResult =
  | {
      readonly ok: true
      /** The path that was found: leaf first, anchor last. */
      readonly path: readonly [Certificate, ...Certificate[]]
      readonly leafTime: LeafValidity
    }
  /** The reason is one sentence for a log. */
  | { readonly ok: false; readonly reason: string }

/**
 * Verifies a client's certificates up to an anchor (RFC 5280, section 6, without policies). The
 * search starts at the anchors, so it never verifies a signature with the key of an authority that
 * does not chain to an anchor, no matter which certificates the client presents.
 */
export function verifyClientChain(question: ClientChainInput): ClientChainResult {
  const [leaf, ...others] = question.chain
  if (others.length >= clientChainLimits.presentedMax) {
    return { ok: false, reason: 'it presents more certificates than are looked at' }
  }
  const leafTime = timeOf(leaf, question.nowMs)
  const fault = attempt(() => leafFault(leaf, leafTime, question))
  if (fault !== null) return { ok: false, reason: `the certificate ${fault}` }
  const search = new PathSearch(question)
  const path = search.find()
  return path === null ? { ok: false, reason: search.reason } : { ok: true, path, leafTime }
}

function timeOf({ notBeforeMs, notAfterMs }: Certificate, nowMs: number): LeafValidity {
  if (nowMs > notAfterMs) return 'expired'
  return nowMs < notBeforeMs ? 'not-yet-valid' : 'valid'
}

/** Runs a check; an invalid extension makes the certificate invalid. */
function attempt(judge: () => string | null): string | null {
  try {
    return judge()
  } catch (error) {
    if (error instanceof DerError) return `can not be read: ${error.message}`
    throw error
  }
}

function leafFault(
  leaf: Certificate,
  leafTime: LeafValidity,
  question: ClientChainInput,
): string | null {
  if (readBasicConstraints(leaf.contents.extensions).isAuthority) {
    return 'is that of a CA, and no client is one'
  }
  if (question.leafTime === 'enforced' && leafTime !== 'valid') return timeFault(leaf, leafTime)
  return commonFault(leaf, question)
}

function timeFault({ notBeforeMs, notAfterMs }: Certificate, time: LeafValidity): string {
  return time === 'expired'
    ? `expired at ${isoTime(notAfterMs)}`
    : `is not valid before ${isoTime(notBeforeMs)}`
}

/**
 * Extensions that this program processes, or that do not affect trust. Other critical extensions
 * make a certificate invalid.
 */
const known: ReadonlySet<string> = new Set(Object.values(extensionOids))

/** Checks that apply to every certificate of a path. */
function commonFault(
  certificate: Certificate,
  { requiresClientAuth }: ClientChainInput,
): string | null {
  const { contents } = certificate
  if (!isAllowedKey(inspectKey(contents.spki))) {
    return `has a key of no kind allowed (${ALLOWED_KEYS_TEXT})`
  }
  for (const [type, { isCritical }] of contents.extensions) {
    if (isCritical && !known.has(type)) return 'has a critical extension that is not known here'
  }
  const isForClients = !requiresClientAuth || permitsPurpose(certificate, 'clientAuth')
  return isForClients ? null : 'is not meant for clients (extended key usage without clientAuth)'
}

function authorityFault(authority: Certificate, question: ClientChainInput): string | null {
  const { extensions } = authority.contents
  // @guard client-chains--ca
  if (!readBasicConstraints(extensions).isAuthority) return 'is not a CA certificate'
  if (readKeyUsage(extensions)?.has(keyUsageBit.keyCertSign) === false) {
    return 'may not sign certificates (key usage without keyCertSign)'
  }
  const time = timeOf(authority, question.nowMs)
  return time === 'valid' ? commonFault(authority, question) : timeFault(authority, time)
}

type Path = readonly [Certificate, ...Certificate[]]

/**
 * Depth-first search from each anchor to the leaf. Each signature is checked once, even if it is
 * part of many paths.
 */
class PathSearch {
  readonly #question: ClientChainInput
  readonly #leaf: Certificate
  /**
   * Presented certificates that, according to their names, may be between the leaf and an anchor.
   */
  readonly #between: readonly Certificate[]
  readonly #signed = new Map<Certificate, Map<Certificate, string | null>>()
  readonly #faults = new Map<Certificate, string | null>()
  readonly #work: ConstraintBudget = { left: clientChainLimits.comparisonsMax }
  #signaturesLeft: number = clientChainLimits.signaturesMax
  #stepsLeft: number = clientChainLimits.stepsMax
  #reason: string | null = null

  constructor(question: ClientChainInput) {
    const [leaf, ...others] = question.chain
    this.#question = question
    this.#leaf = leaf
    this.#between = ancestorsOf(leaf, others)
  }

  /** Reason why no path was found: the first fault that the search met, if it met one. */
  get reason(): string {
    const count = this.#question.anchors.length
    return (
      this.#reason ??
      `the certificate does not lead to any of the ${count} CA certificates that are trusted for it`
    )
  }

  find(): Path | null {
    for (const anchor of this.#question.anchors) {
      if (anchor.sha256 === this.#leaf.sha256 || !this.#leadsOn(anchor)) continue
      const path = this.#descend([anchor])
      if (path !== null) return path
    }
    return null
  }

  #leadsOn(authority: Certificate): boolean {
    const isIssuer = (one: Certificate): boolean => hasIssuerName(one, authority)
    return isIssuer(this.#leaf) || this.#between.some(isIssuer)
  }

  /** @param path lowest certificate first, anchor last. */
  #descend(path: Path): Path | null {
    const [authority] = path
    this.#stepsLeft -= 1
    if (this.#stepsLeft < 0) return this.#refuse('it takes too many steps to find a path')
    const fault = this.#faultOf(authority)
    if (fault !== null) return this.#refuse(`the CA certificate ${nameOf(authority)} ${fault}`)
    return this.#toLeaf(path) ?? this.#toNext(path)
  }

  #toLeaf(path: Path): Path | null {
    if (!hasIssuerName(this.#leaf, path[0])) return null
    const fault = this.#signatureFault(this.#leaf, path[0])
    if (fault !== null) return this.#refuse(`the certificate is ${fault}`)
    const whole: Path = [this.#leaf, ...path]
    const pathFault = attempt(() => faultOfPath(whole, this.#work))
    return pathFault === null ? whole : this.#refuse(pathFault)
  }

  #toNext(path: Path): Path | null {
    if (path.length + 2 > clientChainLimits.depthMax) return null
    for (const next of this.#between) {
      if (!hasIssuerName(next, path[0]) || path.some((one) => isSameAuthority(one, next))) continue
      const fault = this.#signatureFault(next, path[0])
      if (fault !== null) {
        this.#refuse(`the CA certificate ${nameOf(next)} is ${fault}`)
        continue
      }
      const found = this.#descend([next, ...path])
      if (found !== null) return found
    }
    return null
  }

  #refuse(reason: string): null {
    this.#reason ??= reason
    return null
  }

  #faultOf(authority: Certificate): string | null {
    const known = this.#faults.get(authority)
    if (known !== undefined) return known
    const fault = attempt(() => authorityFault(authority, this.#question))
    this.#faults.set(authority, fault)
    return fault
  }

  /** @returns words that complete "it is …"; null when the signature is valid. */
  #signatureFault(certificate: Certificate, issuer: Certificate): string | null {
    if (validSignatures.get(certificate)?.has(issuer) === true) return null
    const known = this.#signed.get(certificate)?.get(issuer)
    if (known !== undefined) return known
    this.#signaturesLeft -= 1
    if (this.#signaturesLeft < 0) return 'one of too many whose signatures would have to be checked'
    const fault = signatureFault(certificate, issuer)
    if (fault === null) {
      const issuers = validSignatures.get(certificate) ?? new WeakSet()
      validSignatures.set(certificate, issuers.add(issuer))
    }
    const ofOne = this.#signed.get(certificate) ?? new Map<Certificate, string | null>()
    this.#signed.set(certificate, ofOne.set(issuer, fault))
    return fault
  }
}

/**
 * Cache: for each certificate, the issuers with whose key its signature was verified in an earlier
 * search. The result never changes, because certificates are immutable; each search makes all other
 * checks again.
 */
const validSignatures = new WeakMap<Certificate, WeakSet<Certificate>>()

/** Whether the certificate names the issuer; names are equal if their bytes are equal. */
function hasIssuerName(certificate: Certificate, issuer: Certificate): boolean {
  return certificate.contents.issuer.equals(issuer.contents.subject.der)
}

/**
 * Whether two certificates have the same subject and key. A cross-signed authority has one
 * certificate per signer; a path contains at most one of these.
 */
function isSameAuthority(one: Certificate, other: Certificate): boolean {
  return (
    one.contents.subject.der.equals(other.contents.subject.der) &&
    one.contents.spki.equals(other.contents.spki)
  )
}

function ancestorsOf(leaf: Certificate, others: readonly Certificate[]): readonly Certificate[] {
  const found = new Map<string, Certificate>()
  const queue = [leaf]
  for (let one = queue.pop(); one !== undefined; one = queue.pop()) {
    for (const other of others) {
      if (other.sha256 === leaf.sha256 || found.has(other.sha256)) continue
      if (!hasIssuerName(one, other)) continue
      found.set(other.sha256, other)
      queue.push(other)
    }
  }
  return [...found.values()]
}

/**
 * Decoded public keys; cached, because decoding a key takes as long as verifying a signature with
 * it.
 */
const keys = new WeakMap<Certificate, KeyObject>()

function keyOf(certificate: Certificate): KeyObject {
  const key = keys.get(certificate) ?? certificate.native.publicKey
  keys.set(certificate, key)
  return key
}

/** @returns words that complete "it is …"; null when the signature is valid. */
function signatureFault({ contents }: Certificate, issuer: Certificate): string | null {
  const algorithm = algorithmOf(contents.signatureAlgorithm)
  if (typeof algorithm === 'string') return `signed ${algorithm}`
  if (isSignedBy(keyOf(issuer), algorithm, contents.tbs, contents.signature)) return null
  return `not signed by ${nameOf(issuer)}, as it says`
}

function algorithmOf(identifier: Uint8Array): SignatureAlgorithm | string {
  try {
    return readSignatureAlgorithm(identifier)
  } catch (error) {
    if (error instanceof DerError) return 'in a way that can not be read'
    throw error
  }
}

/** Checks that depend on a certificate's position in the path. */
function faultOfPath([leaf, ...authorities]: Path, work: ConstraintBudget): string | null {
  const below: Certificate[] = [leaf]
  let depth = 0
  for (const authority of authorities) {
    const { extensions } = authority.contents
    const { pathLengthMax } = readBasicConstraints(extensions)
    // @guard client-chains--depth
    if (pathLengthMax !== null && depth > pathLengthMax) {
      return `the CA certificate ${nameOf(authority)} allows ${pathLengthMax} authorities below it, and there are ${depth}`
    }
    const constraints = readNameConstraints(extensions)
    for (const one of constraints === null ? [] : below) {
      // A self-issued certificate of an authority is exempt from name constraints (RFC 5280,
      // 6.1.3).
      if (one !== leaf && isSelfIssued(one)) continue
      const named = { subject: one.contents.subject, names: one.names }
      const fault = constraints && nameConstraintFault(constraints, named, work)
      // @guard client-chains--names
      if (fault !== null) return `the certificate ${nameOf(one)} ${fault}`
    }
    if (!isSelfIssued(authority)) depth += 1
    below.push(authority)
  }
  return null
}

function isSelfIssued({ contents }: Certificate): boolean {
  return contents.issuer.equals(contents.subject.der)
}

/** A name for logs: limited in length and on one line. */
function nameOf({ contents }: Certificate): string {
  return JSON.stringify(formatDistinguishedName(contents.subject).slice(0, 128))
}
