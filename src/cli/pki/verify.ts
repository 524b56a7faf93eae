import { existsSync } from 'node:fs'
import { rootCertificates } from 'node:tls'

import type { ControllerConfig } from '../../config/controller/options.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { type Credentials, readCredentials } from '../../controller/start/check-certificates.ts'
import { StartCheckReport } from '../../controller/start/check-report.ts'
import { systemClock } from '../../lib/clock.ts'
import { parseHostPort } from '../../lib/text/names.ts'
import { issueLeaf } from '../../pki/authority/authority.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  type Certificate,
  checkCertificateChain,
  findIssuingPath,
  parseCertificates,
} from '../../pki/certificate.ts'
import { checkClientPath } from '../../pki/verify/controller-leaf.ts'
import { readCertificates } from '../../pki/verify/identity-files.ts'
import {
  certificateLifetime,
  isIssuerName,
  missingHosts,
  limitValidity,
} from '../../pki/authority/renewal.ts'
import { readServerCertificate } from '../../pki/verify/server-certificate.ts'
import { readSigningAuthority } from '../../pki/authority/signing-authority.ts'
import { controllerSpiffeId, routerSpiffeId } from '../../pki/spiffe.ts'
import { loadConfigOrFail } from '../client/connection.ts'
import { CheckList } from '../terminal/check-list.ts'
import { printJson } from '../terminal/output.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { isoTime } from '../../lib/text/format-time.ts'

const PROBE_MS = 60 * 60 * 1000

/**
 * `pki verify` checks the credentials of a controller as its peers, routers and clients check them;
 * nothing is changed.
 * @throws {CommandFailure} exit 2 for the configuration, 1 with a sentence for each fault.
 */
export async function verifyCredentials(options: {
  readonly config: string
  readonly json?: boolean
}): Promise<void> {
  const config = loadConfigOrFail(options.config)
  const checks = new CheckList(options.json === true)
  const verification = new Verification(config, checks, systemClock.nowMs())
  await verification.run()
  const { faults } = checks
  if (options.json === true) printJson({ ok: faults.length === 0, checks: checks.checks })
  if (faults.length > 0) throw new CommandFailure(EXIT_FAILED, faults.join('\n'))
}

class Verification {
  readonly #config: ControllerConfig
  readonly #checks: CheckList
  readonly #nowMs: number

  constructor(config: ControllerConfig, checks: CheckList, nowMs: number) {
    this.#config = config
    this.#checks = checks
    this.#nowMs = nowMs
  }

  async run(): Promise<void> {
    const report = new StartCheckReport()
    const credentials = readCredentials(this.#config, this.#nowMs, report)
    for (const fault of report.faults) this.#checks.failed('identity', fault)
    for (const warning of report.warnings) this.#checks.warn('identity', warning)
    if (credentials !== null) this.#verifyIdentity(credentials)
    await this.#verifySigner()
    for (const at of this.#config.serverCertificates.keys()) this.#verifyServer(at)
  }

  #verifyIdentity(credentials: Credentials): void {
    const { id, trustDomain, identity } = this.#config
    const { chain, caPem } = credentials
    const [leaf] = chain
    const hosts = [...leaf.dnsNames, ...leaf.ipAddresses]
    const spiffeId = controllerSpiffeId(trustDomain, id)
    this.#checks.ok('certificate', `${spiffeId}, ${hosts.join(', ')}; ${this.#end(leaf)}`)
    const anchors = parseCertificates(caPem, { certificatesMax: BUNDLE_CERTIFICATES_MAX })
    const isAccepted = this.#attempt(
      'chain',
      `identity.cert: ${identity.cert}: peers would refuse it: `,
      'issue it by an authority that may sign for its names',
      () => {
        checkClientPath(chain, anchors, this.#nowMs)
        return true
      },
    )
    if (isAccepted === null) return
    const [, ...above] = findIssuingPath(chain, anchors, this.#nowMs)
    this.#checks.ok('chain', above.map((one) => `${nameOf(one)}, ${this.#end(one)}`).join('; '))
    const host = parseHostPort(this.#config.cluster.advertise)?.host ?? ''
    if (missingHosts(leaf, [host]).length > 0) {
      this.#checks.failed(
        'certificate',
        `identity.cert: ${identity.cert}: it lacks ${host} of cluster.advertise; issue one with that name`,
      )
    }
    this.#checks.ok('renewal', this.#renewal(leaf))
  }

  #renewal(leaf: Certificate): string {
    const { identity } = this.#config
    const from = isoTime(certificateLifetime(leaf, this.#nowMs).renewAtMs)
    const { cert } = identity.signer
    const isOfSigner =
      cert !== null && existsSync(cert) && isIssuerName(leaf, readCertificates(cert)[0].pem)
    if (isOfSigner) return `by the controller itself, from ${from} on`
    return `by the controller itself where the cluster issued it, else by its issuer, from ${from} on`
  }

  /**
   * Checks the supplied issuing authority. Its key is needed only to create the cluster; the
   * operator should remove it afterwards.
   */
  async #verifySigner(): Promise<void> {
    const { ca, signer } = this.#config.identity
    const { cert, key } = signer
    if (cert === null || key === null) return
    if (!existsSync(key)) {
      this.#checks.ok('signer', `${cert}; not verified, as its key is not on this host`)
      return
    }
    const subject = 'identity.signer: '
    const remedy =
      'name a CA certificate under identity.ca that may sign certificates, with its key'
    try {
      const anchors = readCertificates(ca, BUNDLE_CERTIFICATES_MAX)
      const authority = readSigningAuthority({ cert, key }, anchors, this.#nowMs)
      await this.#issueByWay(authority, anchors)
      const [own] = parseCertificates(authority.certificatePem)
      this.#checks.ok('signer', `${nameOf(own)}, ${this.#end(own)}`)
    } catch (error) {
      this.#checks.failed('signer', `${subject}${errorMessage(error)}; ${remedy}`)
    }
  }

  /** Signs a test certificate with the authority, and verifies it as a router's peers do. */
  async #issueByWay(
    authority: { readonly certificatePem: string; readonly privateKeyPem: string },
    anchors: readonly [Certificate, ...Certificate[]],
  ): Promise<void> {
    const [own] = parseCertificates(authority.certificatePem)
    const { trustDomain } = this.#config
    const probe = await issueLeaf({
      issuer: authority,
      commonName: 'probe',
      hosts: [],
      usages: ['server', 'client'],
      uris: [routerSpiffeId(trustDomain, 'probe')],
      validity: limitValidity(own, this.#nowMs, PROBE_MS),
    })
    checkClientPath(parseCertificates(probe.certificatePem), anchors, this.#nowMs)
  }

  #verifyServer(at: number): void {
    const name = `serverCertificates[${at}]`
    const paths = this.#config.serverCertificates[at]
    if (paths === undefined) return
    const set = this.#attempt(name, `${name}: `, 'put files there that belong together', () =>
      readServerCertificate(paths, this.#nowMs),
    )
    if (set === null) return
    const [leaf] = set.chain
    const hosts = [...leaf.dnsNames, ...leaf.ipAddresses]
    this.#checks.ok('server', `${hosts.join(', ')}; ${nameOf(leaf)}, ${this.#end(leaf)}`)
    if (isOfPublicAuthority(set.chain, this.#nowMs)) return
    this.#checks.warn(
      'server',
      `${name}: ${paths.cert}: clients that trust public authorities alone would refuse it; use the full chain of a public authority, unless it is meant for others`,
    )
  }

  #attempt<T>(check: string, subject: string, remedy: string, step: () => T): T | null {
    try {
      return step()
    } catch (error) {
      this.#checks.failed(check, `${subject}${errorMessage(error)}; ${remedy}`)
      return null
    }
  }

  #end(certificate: Certificate): string {
    const { daysLeft } = certificateLifetime(certificate, this.#nowMs)
    return `until ${isoTime(certificate.notAfterMs)} (${daysLeft} days)`
  }
}

function nameOf({ commonName, native }: Certificate): string {
  return commonName ?? native.serialNumber
}

/** True if the chain ends at one of the public CAs that Node.js trusts. */
function isOfPublicAuthority(
  chain: readonly [Certificate, ...Certificate[]],
  nowMs: number,
): boolean {
  const roots = rootCertificates.flatMap((pem) => {
    try {
      return parseCertificates(pem)
    } catch {
      return []
    }
  })
  try {
    checkCertificateChain(chain, roots, nowMs)
    return true
  } catch {
    return false
  }
}
