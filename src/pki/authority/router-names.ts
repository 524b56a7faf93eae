import { isIP } from 'node:net'

import { type AlternativeNames, formatIp, noAlternativeNames } from '../asn1/alternative-names.ts'
import { CertificateError, parseCertificates } from '../certificate.ts'

const DNS_NAME = /^(?:\*\.)?(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?$/
const DNS_CHARACTERS_MAX = 253
const EMAIL_CHARACTERS_MAX = 320
const URI_CHARACTERS_MAX = 2048
const EMAIL = /^[!-?A-~]+@[A-Za-z0-9._-]+$/
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$/

/**
 * Rules for the hosts in a router's server certificate. A host is a DNS name or an IP address, not
 * necessarily normalized.
 */
export interface RouterNaming {
  /**
   * `enrollment`: a person waits for the response, so a forbidden host makes the request fail, and
   * the error names the host. `extension`: a program renews the certificate, so a forbidden host is
   * only omitted and the router keeps its other hosts.
   */
  readonly at: 'enrollment' | 'extension'
  /**
   * Hosts that the router's record allows (`allowedNames`), even if they would otherwise be
   * forbidden. If not empty, only these and loopback names are allowed.
   */
  readonly allowed: readonly string[]
  /** Hosts of controllers. The certificate contains such a host only if `allowed` lists it. */
  readonly reserved: readonly string[]
  /**
   * Hosts of other routers; at enrollment, the certificate omits them unless `allowed` lists them.
   */
  readonly withheld: readonly string[]
  /**
   * PEM of the current server certificate; an extension may contain only hosts from this
   * certificate, allowed hosts and loopback names.
   */
  readonly currentPem: string | null
}

/**
 * Normalizes a host: a name to lowercase without a trailing dot, an address to the form of RFC
 * 5952.
 */
export function normalizeHost(host: string): string {
  const name = host
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase()
  if (isIP(name) !== 6) return name
  // The URL parser converts an address to the RFC 5952 form. IPv4-mapped IPv6 addresses are
  // converted to IPv4 below, because both forms reach the same host.
  const written = new URL(`http://[${name}]/`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(written)
  if (mapped === null) return written
  const [high, low] = [mapped[1], mapped[2]].map((group) => Number.parseInt(group ?? '', 16))
  return [(high ?? 0) >> 8, (high ?? 0) & 255, (low ?? 0) >> 8, (low ?? 0) & 255].join('.')
}

const LOOPBACK_NAME = /^(?:.+\.)?localhost$|^localhost\.localdomain$|^ip6-(?:localhost|loopback)$/

/**
 * Whether a host is a loopback name or address. A loopback host is reachable only from the same
 * machine.
 */
export function isLoopbackHost(host: string): boolean {
  const key = normalizeHost(host)
  return LOOPBACK_NAME.test(key) || (isIP(key) === 4 && key.startsWith('127.')) || key === '::1'
}

/** The DNS names and IP addresses, normalized and without duplicates. */
export function normalizedHosts({ dnsNames, ipAddresses }: AlternativeNames): string[] {
  return [...new Set([...dnsNames, ...ipAddresses.map(formatIp)].map(normalizeHost))]
}

/**
 * Selects the names of a router's server certificate from the requested names. The certificate
 * always contains the router's SPIFFE id, so that the router cannot impersonate a controller.
 * @param own the router's SPIFFE id.
 * @throws {CertificateError} `wrong-identity`, with the forbidden name in the message.
 */
export function selectRouterNames(
  names: AlternativeNames,
  naming: RouterNaming,
  own: string,
): AlternativeNames {
  checkForms(names)
  const others = names.uris.filter((uri) => uri !== own)
  for (const uri of others) {
    if (/^spiffe:/i.test(uri)) refuse(uri, 'is a SPIFFE id, and not that of the router')
  }
  const { at, currentPem } = naming
  const current = currentPem === null ? noAlternativeNames : parseCertificates(currentPem)[0].names
  const judge = hostJudge(naming, new Set(normalizedHosts(current)))
  const isNew = at === 'enrollment'
  return {
    ...noAlternativeNames,
    dnsNames: names.dnsNames.filter(judge),
    ipAddresses: names.ipAddresses.filter((address) => judge(formatIp(address))),
    emails: names.emails.filter((one) => isNew || current.emails.includes(one)),
    uris: [own, ...others.filter((one) => isNew || current.uris.includes(one))],
  }
}

/** @returns a function that decides whether a requested host goes into the certificate. */
function hostJudge(
  { at, allowed, reserved, withheld }: RouterNaming,
  current: ReadonlySet<string>,
): (host: string) => boolean {
  const keys = (hosts: readonly string[]): ReadonlySet<string> => new Set(hosts.map(normalizeHost))
  const sets = { allowed: keys(allowed), reserved: keys(reserved), withheld: keys(withheld) }
  const faultOf = (host: string, key: string): string | null => {
    // @guard router-certificate-names--wildcard
    if (host.startsWith('*.')) return 'is a wildcard, which covers names of others'
    // @guard router-certificate-names--controllers
    if (sets.reserved.has(key)) return 'is that of a controller'
    return sets.allowed.size === 0 ? null : 'is not among those that the router is allowed'
  }
  return (host) => {
    const key = normalizeHost(host)
    const isLocal = isLoopbackHost(host)
    if (sets.allowed.has(key)) return true
    const fault = isLocal ? null : faultOf(host, key)
    // @guard router-certificate-names--extension
    if (at === 'extension') return fault === null && (current.has(key) || isLocal)
    if (fault === null) return isLocal || !sets.withheld.has(key)
    return refuse(host, `${fault}; ${REMEDY}`)
  }
}

const REMEDY =
  'take it out of csr.sans, or have an administrator add it to allowedNames of the router and re-enroll the router'

function checkForms(names: AlternativeNames): void {
  for (const name of names.dnsNames) {
    if (name.length > DNS_CHARACTERS_MAX || !DNS_NAME.test(name)) refuse(name, 'is not a DNS name')
  }
  for (const name of names.emails) {
    if (name.length > EMAIL_CHARACTERS_MAX || !EMAIL.test(name))
      refuse(name, 'is not a mail address')
  }
  for (const name of names.uris) {
    if (name.length > URI_CHARACTERS_MAX || !URI.test(name)) refuse(name, 'is not a URI')
  }
}

function refuse(name: string, what: string): never {
  throw new CertificateError(
    'wrong-identity',
    `the alternative name ${JSON.stringify(name.slice(0, 256))} ${what}`,
  )
}
