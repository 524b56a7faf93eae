import {
  type AlternativeNames,
  readDirectoryName,
  formatIp,
  readIa5String,
  generalNameTag,
} from '../asn1/alternative-names.ts'
import {
  contextTag,
  DerError,
  DerReader,
  derTag,
  type DerValue,
  readOnlyDerValue,
  readInnerDerValues,
} from '../asn1/der.ts'
import {
  type DistinguishedName,
  formatDistinguishedName,
  isNameWithin,
  attributeTexts,
} from '../asn1/distinguished-name.ts'
import type { Extensions } from '../asn1/extensions.ts'
import { attributeOids, extensionOids } from '../asn1/object-identifiers.ts'

/**
 * Maximum subtrees in the constraints of one certificate, counted separately for permitted and
 * excluded subtrees.
 */
const SUBTREES_MAX = 256

/** Constraints on the names of certificates below an authority (RFC 5280, 4.2.1.10). */
interface NameConstraints {
  readonly permitted: readonly Subtree[]
  readonly excluded: readonly Subtree[]
}

interface Subtree {
  /**
   * Tag of the constrained name type: a tag in `generalNameTag`, or the tag of an unsupported type.
   */
  readonly tag: number
  /**
   * Whether the name is in the subtree.
   * @returns null when the name cannot be compared.
   */
  readonly holds: (name: Name) => boolean | null
  /**
   * Like `holds`; a wildcard name counts as inside if any host that matches the wildcard is in the
   * subtree.
   */
  readonly mayHold: (name: Name) => boolean | null
}

type Name = string | Uint8Array | DistinguishedName

/** Certificate whose names are checked. */
interface NamedCertificate {
  readonly subject: DistinguishedName
  readonly names: AlternativeNames
}

/** Remaining number of comparisons, shared by all constraints of one chain. */
export interface ConstraintBudget {
  left: number
}

/**
 * @returns null when the certificate has no NameConstraints extension.
 * @throws {DerError}
 */
export function readNameConstraints(extensions: Extensions): NameConstraints | null {
  const extension = extensions.get(extensionOids.nameConstraints)
  if (extension === undefined) return null
  const reader = new DerReader(readOnlyDerValue(extension.value, derTag.sequence).contents)
  const permitted = reader.optional(contextTag(0))
  const excluded = reader.optional(contextTag(1))
  reader.end()
  return { permitted: subtreesOf(permitted), excluded: subtreesOf(excluded) }
}

function subtreesOf(list: DerValue | null): Subtree[] {
  if (list === null) return []
  return readInnerDerValues(list, SUBTREES_MAX).map((value) => {
    // Rejects a subtree with a minimum or maximum, because RFC 5280 does not allow them.
    const [base, ...distances] = value.tag === derTag.sequence ? readInnerDerValues(value, 3) : []
    if (base === undefined || distances.length > 0) throw new DerError('no subtree of names')
    return subtreeOf(base)
  })
}

function subtreeOf(base: DerValue): Subtree {
  const { tag } = base
  switch (tag) {
    case generalNameTag.dns:
      return dnsSubtree(readIa5String(base).toLowerCase())
    case generalNameTag.email:
      return plainSubtree(tag, emailTest(readIa5String(base)))
    case generalNameTag.uri:
      return plainSubtree(tag, uriTest(readIa5String(base).toLowerCase()))
    case generalNameTag.ip:
      return plainSubtree(tag, ipTest(base.contents))
    case generalNameTag.directory:
      return plainSubtree(tag, directoryTest(readDirectoryName(base)))
    default:
      return plainSubtree(tag, () => null)
  }
}

type NameTest = (name: Name) => boolean | null

function plainSubtree(tag: number, holds: NameTest): Subtree {
  return { tag, holds, mayHold: holds }
}

/** Subtree of a host and all hosts below it; with a leading dot, only the hosts below it. */
function dnsSubtree(constraint: string): Subtree {
  const base = constraint.replace(/^\./, '')
  const isBelowOnly = base !== constraint
  if (base !== '' && labelsOf(base) === null) throw new DerError('no DNS name to constrain by')
  const holds: NameTest = (name) => {
    const host = hostOf(name)
    if (host === null || base === '') return host === null ? null : true
    return host.endsWith(`.${base}`) || (!isBelowOnly && host === base)
  }
  const mayHold: NameTest = (name) => {
    const host = hostOf(name)
    const parent = base.slice(base.indexOf('.') + 1)
    // A wildcard of the parent may match the constrained host: for example, `*.example.org` matches
    // `secret.example.org`.
    if (host?.startsWith('*.') === true && host.slice(2) === parent && !isBelowOnly) return true
    return holds(name)
  }
  return { tag: generalNameTag.dns, holds, mayHold }
}

function hostOf(name: Name): string | null {
  if (typeof name !== 'string') return null
  const host = name.toLowerCase()
  return labelsOf(host) === null ? null : host
}

const LABEL = /^(?:\*|[a-z0-9_]|[a-z0-9_][a-z0-9_-]*[a-z0-9_])$/

function labelsOf(host: string): readonly string[] | null {
  const labels = host.split('.')
  return host.length <= 253 && labels.every((label) => LABEL.test(label)) ? labels : null
}

/**
 * Matches one mailbox, or all mailboxes of a host, or with a leading dot all mailboxes of the hosts
 * below that host.
 */
function emailTest(constraint: string): NameTest {
  const at = constraint.lastIndexOf('@')
  if (at >= 0) {
    const local = constraint.slice(0, at)
    const host = constraint.slice(at + 1).toLowerCase()
    return (name) => {
      const mailbox = mailboxOf(name)
      return mailbox && mailbox.local === local && mailbox.host === host
    }
  }
  const isOf = hostTest(constraint.toLowerCase())
  return (name) => {
    const mailbox = mailboxOf(name)
    return mailbox && isOf(mailbox.host)
  }
}

function mailboxOf(name: Name): { readonly local: string; readonly host: string } | null {
  if (typeof name !== 'string') return null
  const at = name.lastIndexOf('@')
  const host = hostOf(name.slice(at + 1))
  return at < 1 || host === null ? null : { local: name.slice(0, at), host }
}

/** Matches a host or, if the constraint begins with a dot, all hosts below that host. */
function hostTest(constraint: string): (host: string) => boolean {
  if (constraint === '') return () => true
  if (labelsOf(constraint.replace(/^\./, '')) === null) {
    throw new DerError('no host to constrain by')
  }
  return (host) => (constraint.startsWith('.') ? host.endsWith(constraint) : host === constraint)
}

/**
 * Compares the host of a URI. A URI without a host, or with an IP address, cannot be compared (RFC
 * 5280).
 */
function uriTest(constraint: string): NameTest {
  const isOf = hostTest(constraint)
  return (name) => {
    const authority =
      typeof name === 'string' ? /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(name) : null
    const host =
      authority?.[1]
        ?.replace(/^.*@/, '')
        .replace(/:[0-9]*$/, '')
        .toLowerCase() ?? ''
    const labels = labelsOf(host)
    if (labels === null || /^[0-9]+$/.test(labels.at(-1) ?? '')) return null
    return isOf(host)
  }
}

/** Compares IP addresses. The constraint contains an address and a mask, each of 4 or 16 bytes. */
function ipTest(constraint: Uint8Array): NameTest {
  const half = constraint.length / 2
  if (half !== 4 && half !== 16) throw new DerError('no range of IP addresses')
  const address = constraint.subarray(0, half)
  const mask = constraint.subarray(half)
  return (name) => {
    if (!(name instanceof Uint8Array)) return null
    if (name.length !== half) return false
    return name.every((byte, at) => ((byte ^ (address[at] ?? 0)) & (mask[at] ?? 0)) === 0)
  }
}

function directoryTest(above: DistinguishedName): NameTest {
  return (name) =>
    typeof name === 'string' || name instanceof Uint8Array ? null : isNameWithin(name, above)
}

/**
 * @param work budget from which each comparison subtracts one.
 * @returns words that complete a sentence about the certificate; null when the certificate's names
 * satisfy the constraints.
 */
export function nameConstraintFault(
  { permitted, excluded }: NameConstraints,
  { subject, names }: NamedCertificate,
  work: ConstraintBudget,
): string | null {
  const subjects = subject.relativeNames.length === 0 ? [] : [subject]
  const all: readonly (readonly [number, readonly Name[]])[] = [
    [generalNameTag.dns, names.dnsNames],
    [generalNameTag.email, emailsOf(subject, names)],
    [generalNameTag.uri, names.uris],
    [generalNameTag.ip, names.ipAddresses],
    [generalNameTag.directory, [...subjects, ...names.directoryNames]],
    ...[...new Set(names.otherTags)].map((tag) => [tag, ['']] as const),
  ]
  for (const [tag, list] of all) {
    const outside = excluded.filter((subtree) => subtree.tag === tag)
    const inside = permitted.filter((subtree) => subtree.tag === tag)
    if (outside.length + inside.length === 0) continue
    for (const name of list) {
      work.left -= outside.length + inside.length
      if (work.left < 0) return 'has too many names and constraints to compare'
      if (!isAllowed(name, inside, outside)) {
        return `names ${printed(name)}, which the name constraints of an authority above it exclude`
      }
    }
  }
  return null
}

function isAllowed(
  name: Name,
  permitted: readonly Subtree[],
  excluded: readonly Subtree[],
): boolean {
  if (excluded.some((subtree) => subtree.mayHold(name) !== false)) return false
  return permitted.length === 0 || permitted.some((subtree) => subtree.holds(name) === true)
}

/**
 * The email addresses to check. An address in the subject is checked only if the certificate has no
 * alternative names (RFC 5280, 4.2.1.10).
 */
function emailsOf(subject: DistinguishedName, names: AlternativeNames): readonly string[] {
  const { emails, dnsNames, uris, ipAddresses, directoryNames, otherTags } = names
  const others = [dnsNames, uris, ipAddresses, directoryNames, otherTags]
  if (emails.length > 0 || others.some((list) => list.length > 0)) return emails
  return attributeTexts(subject, attributeOids.emailAddress)
}

/** A name for logs: limited in length and on one line. */
function printed(name: Name): string {
  const text =
    typeof name === 'string'
      ? name
      : name instanceof Uint8Array
        ? formatIp(name)
        : formatDistinguishedName(name)
  return JSON.stringify(text.slice(0, 256))
}
