import { createHash } from 'node:crypto'

import { certificatesPem } from '../../pki/verify/identity-files.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  CertificateError,
  checkCertificateChain,
  checkKeyMatches,
  leafControllerId,
  parseCertificates,
} from '../../pki/certificate.ts'
import { checkControllerUsage } from '../../pki/verify/controller-leaf.ts'
import {
  type CertificateWithKey,
  issueControllerCertificateForKey,
  LEAF_LIFETIME_MS,
} from '../../pki/authority/authority.ts'
import { limitValidity } from '../../pki/authority/renewal.ts'
import { checkSigningAuthority } from '../../pki/authority/signing-authority.ts'
import { parsePublicKey } from '../../pki/public-key.ts'
import { parseSpiffeId } from '../../pki/spiffe.ts'
import { serverCertificateFault } from '../../pki/verify/server-certificate.ts'
import { isControllerId, isTrustDomain, parseHostPort } from '../../lib/text/names.ts'
import type { MigrationReport } from '../report.ts'
import type { PemIdentity, OpenZitiConfiguration, PemText } from './openziti-configuration.ts'
import { configurationFault } from './settings.ts'

/**
 * A controller of the new network, with the id, addresses and key of a controller of the old
 * network.
 */
export interface MigratedController {
  readonly id: string
  readonly configuration: OpenZitiConfiguration
  /** PEM chain: leaf first, then the intermediates. */
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly serverCertificates: readonly CertificateWithKey[]
}

/** Certificates and keys of the new network. */
export interface MigratedAuthorities {
  readonly trustDomain: string
  readonly caPem: string
  /** The authority that signs new certificates. */
  readonly issuing: CertificateWithKey
  readonly controllers: readonly MigratedController[]
}

/** Store name in findings about configurations and certificates. */
const STORE = 'configuration'

type Chain = readonly [Certificate, ...Certificate[]]

/**
 * Reads ids, keys and authorities from the configurations of the old controllers, and reports what
 * will change.
 * @throws {MigrationFault} CONFIGURATION, one sentence.
 */
export async function migrateAuthorities(
  configurations: readonly [OpenZitiConfiguration, ...OpenZitiConfiguration[]],
  report: MigrationReport,
  nowMs: number,
): Promise<MigratedAuthorities> {
  const anchors = bundleOf(configurations)
  const trustDomain = trustDomainOf(configurations, anchors)
  const [first, ...others] = configurations
  const issuing = issuingAuthority(first, anchors, nowMs)
  for (const other of others) noteOtherSigner(other, issuing, report)
  for (const one of configurations) noteWebAuthorities(one, anchors, report)
  const controllers: MigratedController[] = []
  for (const configuration of configurations) {
    const made = await migrateController(
      { configuration, trustDomain, anchors, issuing, nowMs },
      report,
    )
    if (controllers.some(({ id }) => id === made.id)) {
      throw configurationFault(
        `${configuration.path} is a second configuration of the controller ${made.id}; name each controller once`,
      )
    }
    controllers.push(made)
  }
  return { trustDomain, caPem: certificatesPem(anchors), issuing, controllers }
}

/**
 * The CA certificates in `identity.ca` and in the signers of all controllers, without duplicates.
 */
function bundleOf(configurations: readonly OpenZitiConfiguration[]): Certificate[] {
  const found = new Map<string, Certificate>()
  for (const { identity, signer, path } of configurations) {
    const ofSigner = [signer.certificate, ...(signer.ca === null ? [] : [signer.ca])]
    for (const source of [identity.ca, ...ofSigner]) {
      for (const one of certificatesOf(source, path, BUNDLE_CERTIFICATES_MAX)) {
        if (one.isAuthority) found.set(one.sha256, one)
      }
    }
  }
  if (found.size <= BUNDLE_CERTIFICATES_MAX) return [...found.values()]
  throw configurationFault(
    `the controllers trust ${found.size} authorities, and a network has at most ${BUNDLE_CERTIFICATES_MAX}; remove those that have ended`,
  )
}

/**
 * The trust domain, determined as OpenZiti does: from the certificates; otherwise from the
 * authorities, from the configuration, or as SHA-1 of the root.
 */
function trustDomainOf(
  configurations: readonly OpenZitiConfiguration[],
  anchors: readonly Certificate[],
): string {
  const found = configurations.map((configuration) => {
    const { identity, signer, path, trustDomain } = configuration
    const { serverCertificate, clientCertificate } = identity
    const own = [serverCertificate, clientCertificate, signer.certificate].flatMap((source) =>
      certificatesOf(source, path),
    )
    const uris = [...own, ...anchors].flatMap((one) => one.uris)
    return uris.flatMap(domainOfUri)[0] ?? trustDomain ?? rootSha1(anchors)
  })
  const [first = ''] = found
  const other = found.find((one) => one !== first)
  if (other !== undefined) {
    throw configurationFault(
      `the configurations are of different trust domains, ${first} and ${other}; name controllers of one network`,
    )
  }
  if (isTrustDomain(first)) return first
  throw configurationFault(
    `the trust domain ${first} is no valid one; it has lower-case letters, digits, '.', '_' and '-'`,
  )
}

function domainOfUri(uri: string): string[] {
  // The SPIFFE id of an authority has only a trust domain and no path.
  const bare = /^spiffe:\/\/([a-z0-9._-]+)\/?$/.exec(uri)?.[1]
  return bare === undefined ? [parseSpiffeId(uri)?.trustDomain ?? ''].filter(Boolean) : [bare]
}

function rootSha1(anchors: readonly Certificate[]): string {
  const root = anchors.find(({ native }) => native.checkIssued(native))
  return root?.sha1 ?? createHash('sha1').digest('hex')
}

function issuingAuthority(
  { signer, path }: OpenZitiConfiguration,
  anchors: readonly Certificate[],
  nowMs: number,
): CertificateWithKey {
  const chain = certificatesOf(signer.certificate, path)
  const isRoot = ({ native }: Certificate): boolean => native.checkIssued(native)
  const [own, ...above] = chain
  const certificatePem = certificatesPem([own, ...above.filter((one) => !isRoot(one))])
  const made = { certificatePem, privateKeyPem: signer.key.text }
  try {
    checkSigningAuthority({ signer: made, anchors, nowMs })
  } catch (error) {
    throw sentenceOf(error, `${path}: edge.enrollment.signingCert`)
  }
  return made
}

function noteOtherSigner(
  { signer, path }: OpenZitiConfiguration,
  issuing: CertificateWithKey,
  report: MigrationReport,
): void {
  const [own] = certificatesOf(signer.certificate, path)
  if (own.sha256 === parseCertificates(issuing.certificatePem)[0].sha256) return
  const reason = `its authority ${JSON.stringify(own.commonName ?? '')} stays trusted and signs no more; destroy its key`
  report.note('changed', { store: STORE, id: path, field: 'edge.enrollment.signingCert' }, reason)
}

/**
 * Reports the CAs of HTTPS listeners that the migration does not trust. Such a CA may be public and
 * issue certificates to anyone, so it is trusted only if routers and controllers already trust it.
 */
function noteWebAuthorities(
  { webIdentities, path }: OpenZitiConfiguration,
  anchors: readonly Certificate[],
  report: MigrationReport,
): void {
  const trusted = new Set(anchors.map(({ sha256 }) => sha256))
  for (const { ca } of webIdentities) {
    for (const one of certificatesOf(ca, path, BUNDLE_CERTIFICATES_MAX)) {
      if (trusted.has(one.sha256)) continue
      trusted.add(one.sha256)
      const reason = `its authority ${JSON.stringify(one.commonName ?? '')} is not in identity.ca, and does not become one of the network`
      report.note('changed', { store: STORE, id: path, field: 'web.identity.ca' }, reason)
    }
  }
}

interface ControllerOptions {
  readonly configuration: OpenZitiConfiguration
  readonly trustDomain: string
  readonly anchors: readonly Certificate[]
  readonly issuing: CertificateWithKey
  readonly nowMs: number
}

async function migrateController(
  options: ControllerOptions,
  report: MigrationReport,
): Promise<MigratedController> {
  const { configuration } = options
  const { path, identity } = configuration
  const serving = servingIdentity(configuration)
  const chain = certificatesOf(serving.serverCertificate, path)
  const [control] = certificatesOf(identity.serverCertificate, path)
  const id = idOf(control, certificatesOf(identity.clientCertificate, path)[0], options)
  checkKeys(configuration)
  checkKeyKind(chain[0], path)
  const isShared = control.sha256 === chain[0].sha256
  const fault = isShared
    ? leafFault(chain, id, options)
    : 'HTTPS clients and routers got different ones, and get the same one here'
  let certificatePem = certificatesPem(chain)
  if (fault !== null) {
    certificatePem = await reissued([chain[0], control], id, options)
    const reason = `its certificate is issued again for the same key, as ${fault}`
    const field = isShared ? 'identity.server_cert' : 'web.identity.server_cert'
    report.note('changed', { store: STORE, id, field }, reason)
  }
  noteFiles(configuration, id, report)
  return {
    id,
    configuration,
    certificatePem,
    privateKeyPem: serving.key.text,
    serverCertificates: otherCertificates(id, options, serving, report),
  }
}

/**
 * The identity whose key signs enrollment tokens: the identity of the listener for clients, because
 * clients and routers verify a token with the key of the certificate that this listener presents.
 */
function servingIdentity({ identity, webIdentities }: OpenZitiConfiguration): PemIdentity {
  return webIdentities.find(({ isForClients }) => isForClients) ?? identity
}

/**
 * Server certificates in addition to the controller's own certificate, without duplicates. Reports
 * certificates that a listener cannot use; the controller starts without these.
 */
function otherCertificates(
  id: string,
  { configuration, nowMs }: ControllerOptions,
  serving: PemIdentity,
  report: MigrationReport,
): CertificateWithKey[] {
  const { identity, webIdentities, path } = configuration
  const known = new Set(
    [serving, identity].map((one) => certificatesOf(one.serverCertificate, path)[0].sha256),
  )
  const found: CertificateWithKey[] = []
  for (const one of [serving, identity, ...webIdentities]) {
    const own = { certificate: one.serverCertificate, key: one.key }
    for (const { certificate, key } of [own, ...one.alternatives]) {
      const chain = certificatesOf(certificate, path)
      if (known.has(chain[0].sha256)) continue
      known.add(chain[0].sha256)
      const fault = serverCertificateFault(chain, key.text, nowMs)
      if (fault !== null) {
        const reason = `no listener shows ${certificate.path ?? 'the certificate'} until you replace it: ${fault}`
        report.note('decide', { store: STORE, id, field: 'alt_server_certs' }, reason)
      }
      found.push({ certificatePem: certificatesPem(chain), privateKeyPem: key.text })
    }
  }
  return found
}

function noteFiles(
  { unused, routers }: OpenZitiConfiguration,
  id: string,
  report: MigrationReport,
): void {
  for (const key of unused) {
    const reason = 'has no counterpart; the written configuration lists it as a comment'
    report.note('changed', { store: STORE, id, field: key }, reason)
  }
  if (routers !== null) return
  const reason = 'no address for routers is configured, so no router connects to this controller'
  report.note('decide', { store: STORE, id, field: 'ctrl.listener' }, reason)
}

/**
 * Id of the controller: from its SPIFFE id or, without one, the common name of its client
 * certificate.
 */
function idOf(server: Certificate, client: Certificate, options: ControllerOptions): string {
  const { path } = options.configuration
  const ids = [...server.uris, ...client.uris].flatMap(
    (uri) => /^\/controller\/([^/]+)$/.exec(parseSpiffeId(uri)?.path ?? '')?.[1] ?? [],
  )
  const id = ids[0] ?? client.commonName ?? ''
  if (isControllerId(id)) return id
  throw configurationFault(
    `${path}: the controller has the id ${JSON.stringify(id)} in its certificate, and ids have 1 to 64 letters, digits, '.', '_' and '-'`,
  )
}

/**
 * Checks the keys of the identities that an OpenZiti controller needs to start. If a key does not
 * match its certificate, the configuration cannot be that of a running controller, even if the new
 * controller does not use the key. Other listeners are reported by `otherCertificates`.
 * @throws {MigrationFault} CONFIGURATION.
 */
function checkKeys(configuration: OpenZitiConfiguration): void {
  const { identity, path } = configuration
  checkIdentityKeys(identity, `${path}: identity`)
  const serving = servingIdentity(configuration)
  if (serving !== identity) checkIdentityKeys(serving, `${path}: web.identity`)
}

function checkIdentityKeys(identity: PemIdentity, place: string): void {
  const { serverCertificate, clientCertificate, key, keyName, clientKey } = identity
  checkKey(serverCertificate, key, `${place}.${keyName}`)
  if (clientKey !== null) checkKey(clientCertificate, clientKey, `${place}.key`)
}

function checkKey(certificate: PemText, key: PemText, place: string): void {
  try {
    checkKeyMatches(certificatesOf(certificate, place)[0], key.text)
  } catch (error) {
    throw sentenceOf(error, place)
  }
}

/** Checks that a Flotilla controller can use a key of this kind. */
function checkKeyKind(leaf: Certificate, path: string): void {
  try {
    parsePublicKey(leaf.native.publicKey.export({ type: 'spki', format: 'der' }))
  } catch (error) {
    throw sentenceOf(error, `${path}: identity.key`)
  }
}

/** Reason why the controller cannot keep its certificate, as one clause; null if it can keep it. */
function leafFault(chain: Chain, id: string, options: ControllerOptions): string | null {
  const { trustDomain, anchors, nowMs } = options
  try {
    if (leafControllerId(chain[0], trustDomain) !== id) return 'it names another controller'
  } catch {
    return 'it has no SPIFFE id of this controller'
  }
  try {
    checkControllerUsage(chain[0])
    checkCertificateChain([...chain], anchors, nowMs)
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    return error.message
  }
  return null
}

/**
 * @param leaves The new certificate contains the names of all of them, and has the public key of
 * the first.
 */
async function reissued(
  leaves: readonly [Certificate, ...Certificate[]],
  id: string,
  options: ControllerOptions,
): Promise<string> {
  const { configuration, trustDomain, issuing, nowMs } = options
  const addresses = [
    ...configuration.web.map(({ advertise }) => advertise),
    ...(configuration.routers === null ? [] : [configuration.routers.advertise]),
  ]
  const advertised = addresses.flatMap((address) => parseHostPort(address)?.host ?? [])
  const named = leaves.flatMap(({ dnsNames, ipAddresses }) => [...dnsNames, ...ipAddresses])
  const [issuer] = parseCertificates(issuing.certificatePem)
  return await issueControllerCertificateForKey({
    issuer: issuing,
    trustDomain,
    id,
    hosts: [...new Set([...named, ...advertised])],
    validity: limitValidity(issuer, nowMs, LEAF_LIFETIME_MS),
    publicKeySpki: Uint8Array.from(
      leaves[0].native.publicKey.export({ type: 'spki', format: 'der' }),
    ),
  })
}

function certificatesOf(source: PemText, path: string, certificatesMax?: number): Chain {
  try {
    return parseCertificates(source.text, certificatesMax === undefined ? {} : { certificatesMax })
  } catch (error) {
    throw sentenceOf(error, source.path ?? path)
  }
}

function sentenceOf(error: unknown, place: string): unknown {
  return error instanceof CertificateError
    ? configurationFault(`${place}: ${error.message}`)
    : error
}
