import type { AlternativeNames } from './asn1/alternative-names.ts'
import { CertificateError } from './certificate.ts'
import { parseSpiffeId, routerSpiffeId } from './spiffe.ts'

const DNS_NAME = /^(?:\*\.)?(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?$/
const DNS_CHARACTERS_MAX = 253
const EMAIL_CHARACTERS_MAX = 320
const URI_CHARACTERS_MAX = 2048
const EMAIL = /^[!-?A-~]+@[A-Za-z0-9._-]+$/
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$/

/**
 * The alternative names that a router asks for are copied into its certificates, so none may speak
 * for another part of the network: under its own trust domain a router has its own SPIFFE id or
 * none.
 * @throws {CertificateError} `wrong-identity`, with the name.
 */
export function checkRouterNames(
  names: AlternativeNames,
  trustDomain: string,
  routerId: string,
): void {
  for (const name of names.dnsNames) {
    if (name.length > DNS_CHARACTERS_MAX || !DNS_NAME.test(name)) refuse(name, 'is not a DNS name')
  }
  for (const name of names.emails) {
    if (name.length > EMAIL_CHARACTERS_MAX || !EMAIL.test(name))
      refuse(name, 'is not a mail address')
  }
  for (const name of names.uris) {
    if (name.length > URI_CHARACTERS_MAX || !URI.test(name)) refuse(name, 'is not a URI')
    if (/^spiffe:/i.test(name)) checkSpiffeId(name, trustDomain, routerId)
  }
}

function checkSpiffeId(name: string, trustDomain: string, routerId: string): void {
  const id = parseSpiffeId(name)
  if (id === null) refuse(name, 'is no valid SPIFFE id')
  if (id.trustDomain === trustDomain && name !== routerSpiffeId(trustDomain, routerId)) {
    refuse(name, 'is a SPIFFE id of this network and not that of the router')
  }
}

function refuse(name: string, what: string): never {
  throw new CertificateError(
    'wrong-identity',
    `the alternative name ${JSON.stringify(name.slice(0, 256))} ${what}`,
  )
}
