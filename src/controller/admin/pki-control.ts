import { isIP } from 'node:net'

import type { CertificateRenewer } from '../../cluster/secrets/certificate-renewer.ts'
import { runWithAudit } from '../../cluster/action-recorder.ts'
import type { Clock } from '../../lib/clock.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import {
  type CertificateWithKey,
  issueControllerCertificateForKey,
  issueLeafForKey,
  LEAF_LIFETIME_MS,
} from '../../pki/authority/authority.ts'
import { parseCertificateRequest } from '../../pki/authority/certificate-request.ts'
import {
  ALTERNATIVE_NAMES_MAX,
  type Certificate,
  CertificateError,
  includesCertificate,
  findIssuingPath,
  leafControllerId,
  parseCertificates,
} from '../../pki/certificate.ts'
import { SecretFileError } from '../../pki/secret-file.ts'
import { isIssuerName, limitValidity } from '../../pki/authority/renewal.ts'
import { checkSigningAuthority } from '../../pki/authority/signing-authority.ts'
import { externalSpiffeId } from '../../pki/spiffe.ts'
import type { ActionRecorder } from '../../ports/membership.ts'
import type { Actor } from '../../ports/actor.ts'
import {
  type ActiveCertificates,
  ISSUED_CERTIFICATE_DAYS_MAX,
  type IssuedExternalCertificate,
  type ExternalCertificateRequest,
  type PkiControl,
  type ServerCertificateStatus,
} from '../../api/cluster/pki-control.ts'

const DAY_MS = 24 * 60 * 60 * 1000

const COMMON_NAME = /^[A-Za-z0-9][A-Za-z0-9 ._@-]{0,63}$/
const DNS_NAME = /^(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/

interface PkiControlDeps {
  readonly renewer: CertificateRenewer
  /** The configured server certificates of other authorities. */
  readonly serverCertificates: () => readonly ServerCertificateStatus[]
  /**
   * Reads all certificate and key files again, and uses the valid ones.
   * @throws {CertificateError | SecretFileError} for invalid files.
   */
  readonly reload: () => Promise<void>
  readonly trustDomain: string
  readonly clock: Clock
  /** Issuing authority of the cluster; null until this controller knows it. */
  readonly issuing: () => CertificateWithKey | null
  /** Replaces the issuing authority of the whole cluster. @throws {Problem} */
  readonly installIssuing: (authority: CertificateWithKey) => Promise<void>
  readonly actions: ActionRecorder
  /** SHA-256 of a member's public key in the configuration; null when there is no such member. */
  readonly memberKeySha256: (id: string) => Uint8Array | null
}

/** Operations on certificates for operators of a running controller. */
export function createPkiControl(deps: PkiControlDeps): PkiControl {
  const { renewer, actions } = deps
  const view = (): ActiveCertificates => {
    return { ...renewer.view(), serverCertificates: deps.serverCertificates() }
  }
  return {
    view,
    renew: noted(actions, 'certificate-renew', async () => {
      await renewer.renew()
      return view()
    }),
    reload: noted(actions, 'certificate-reload', async () => {
      await deps.reload()
      return view()
    }),
    // The log records the requester before the controller installs the authority.
    installIssuing: (given, by) =>
      runWithAudit(actions, { action: 'issuing-install', target: null }, by, () =>
        explained(() => installIssuing(deps, given)),
      ),
    issue: (request, by) => explained(() => issue(deps, request, by)),
    renewMember: (certificatePem, by) =>
      noted(actions, 'certificate-renew-member', () => renewMember(deps, certificatePem))(by),
  }
}

/**
 * Runs an action that must work without a quorum: the action does not wait for its audit record.
 */
function noted<T>(
  actions: ActionRecorder,
  action: string,
  run: () => Promise<T>,
): (by: Actor) => Promise<T> {
  return async (by) => {
    const result = await explained(run)
    void actions.note({ action, target: null, outcome: 'done' }, by)
    return result
  }
}

/**
 * Runs a step. The caller receives a certificate or file error as a refusal with its reason, not as
 * an internal error.
 */
async function explained<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof CertificateError || error instanceof SecretFileError)) throw error
    throw new Problem('CERTIFICATE_REFUSED', { detail: error.message, cause: error })
  }
}

/** Installs an authority: a certificate with its key, or a new certificate for the current key. */
async function installIssuing(
  deps: PkiControlDeps,
  { certificatePem, ...given }: Parameters<PkiControl['installIssuing']>[0],
): Promise<{ readonly notAfterMs: number; readonly formerNotAfterMs: number }> {
  const { renewer, clock } = deps
  const present = presentIssuing(deps)
  const privateKeyPem = given.privateKeyPem ?? present.privateKeyPem
  const signer = { certificatePem, privateKeyPem }
  checkSigningAuthority({ signer, anchors: renewer.anchors, nowMs: clock.nowMs() })
  const [next] = parseCertificates(certificatePem)
  const [before] = parseCertificates(present.certificatePem)
  if (next.native.subject !== before.native.subject) {
    throw new CertificateError(
      'wrong-identity',
      'the name must equal that of the current issuing authority; controllers recognize the certificates they renew by it',
    )
  }
  if (next.sha256 !== before.sha256) await deps.installIssuing(signer)
  void renewer.look()
  return { notAfterMs: next.notAfterMs, formerNotAfterMs: before.notAfterMs }
}

/**
 * Issues a leaf for a program outside the cluster, after the log has recorded who requested it. The
 * leaf's SPIFFE id belongs to no controller and no identity.
 */
async function issue(
  deps: PkiControlDeps,
  request: ExternalCertificateRequest,
  by: Actor,
): Promise<IssuedExternalCertificate> {
  const issuer = presentIssuing(deps)
  const { commonName, publicKeySpki } = await parseCertificateRequest(request.requestPem)
  if (commonName === null || !COMMON_NAME.test(commonName)) {
    throw fieldProblem('name', 'must be 1 to 64 letters, digits, spaces or . _ @ -')
  }
  const validity = validityFor(deps, issuer, daysOf(request) * DAY_MS)
  const content = {
    issuer,
    commonName,
    validity,
    uris: [externalSpiffeId(deps.trustDomain)],
    hosts: hostsOf(request),
    usages: usagesOf(request),
  }
  const wanted = { action: 'certificate-issue', target: null, reason: `for ${commonName}` }
  const certificatePem = await runWithAudit(deps.actions, wanted, by, async () => {
    return await issueLeafForKey(content, publicKeySpki)
  })
  return { certificatePem, notAfterMs: validity.notAfterMs }
}

/**
 * Renews the certificate of a member that was offline until its certificate expired. Such a member
 * cannot connect, so it cannot renew the certificate itself.
 */
async function renewMember(
  deps: PkiControlDeps,
  givenPem: string,
): Promise<IssuedExternalCertificate & { readonly id: string }> {
  const issuer = presentIssuing(deps)
  const chain = parseCertificates(givenPem)
  const [leaf] = chain
  const id = leafControllerId(leaf, deps.trustDomain)
  const pinned = deps.memberKeySha256(id)
  if (pinned === null || Buffer.compare(pinned, leaf.publicKeySha256) !== 0) {
    throw new CertificateError(
      'wrong-identity',
      `no member ${id} with this key; have it join with a ticket`,
    )
  }
  checkOwnIssue(deps, chain, issuer)
  const validity = validityFor(deps, issuer, LEAF_LIFETIME_MS)
  const certificatePem = await issueControllerCertificateForKey({
    issuer,
    trustDomain: deps.trustDomain,
    id,
    hosts: [...leaf.dnsNames, ...leaf.ipAddresses],
    publicKeySpki: Uint8Array.from(leaf.native.publicKey.export({ type: 'spki', format: 'der' })),
    validity,
  })
  return { id, certificatePem, notAfterMs: validity.notAfterMs }
}

/**
 * Checks that this cluster issued the certificate, because a renewal copies the certificate's names
 * without checking them.
 */
function checkOwnIssue(
  { renewer, clock }: PkiControlDeps,
  chain: readonly [Certificate, ...Certificate[]],
  issuer: CertificateWithKey,
): void {
  const { anchors } = renewer
  const path = findIssuingPath(chain, anchors, clock.nowMs())
  const isTrusted = path.some((certificate) => includesCertificate(anchors, certificate))
  if (isTrusted && isIssuerName(chain[0], issuer.certificatePem)) return
  throw new CertificateError(
    'untrusted',
    'it was not issued by the authority of this cluster; have its issuer renew it, for the same key',
  )
}

function presentIssuing({ issuing }: PkiControlDeps): CertificateWithKey {
  const present = issuing()
  if (present !== null) return present
  throw new CertificateError(
    'untrusted',
    'the issuing authority of the cluster is not known here yet; retry once this controller has caught up',
  )
}

function validityFor(
  { clock }: PkiControlDeps,
  issuer: CertificateWithKey,
  lifetimeMs: number,
): ReturnType<typeof limitValidity> {
  const nowMs = clock.nowMs()
  const [authority] = parseCertificates(issuer.certificatePem)
  const validity = limitValidity(authority, nowMs, lifetimeMs)
  if (validity.notAfterMs > nowMs) return validity
  throw new CertificateError(
    'expired',
    "the issuing authority of the cluster has expired; run 'flotilla pki renew-issuing' with the root key",
  )
}

function daysOf({ days }: ExternalCertificateRequest): number {
  if (Number.isSafeInteger(days) && days >= 1 && days <= ISSUED_CERTIFICATE_DAYS_MAX) return days
  throw fieldProblem('days', `must be an integer from 1 to ${ISSUED_CERTIFICATE_DAYS_MAX}`)
}

function hostsOf({ hosts }: ExternalCertificateRequest): string[] {
  const isHost = (host: string): boolean => isIP(host) !== 0 || DNS_NAME.test(host)
  if (hosts.length <= ALTERNATIVE_NAMES_MAX && hosts.every(isHost)) return [...new Set(hosts)]
  throw fieldProblem('hosts', 'must be DNS names or IP addresses')
}

function usagesOf({ usages }: ExternalCertificateRequest): ('server' | 'client')[] {
  if (usages.length > 0) return [...new Set(usages)]
  throw fieldProblem('usages', "must be 'server', 'client' or both")
}
