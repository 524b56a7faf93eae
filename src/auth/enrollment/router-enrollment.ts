import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, EnrollSchema, RouterExtendSchema } from '../../../proto/gen/command_pb.ts'
import { enrollmentTokenDigest } from '../../fsm/enrollment/enrollment.ts'
import type { Router } from '../../entities/kinds/router.ts'
import { Problem } from '../../lib/problems.ts'
import { retryWhenRecordsChange } from '../../lib/retry-when-records-change.ts'
import { toHex } from '../../lib/text/to-hex.ts'
import { certificateLifetime } from '../../pki/authority/renewal.ts'
import type {
  CertificateIssuer,
  IssuedCertificate,
  RouterCertificatePair,
  RouterCertifier,
} from '../../ports/certificate-issuer.ts'
import { type Certificate, parseCertificates } from '../../pki/certificate.ts'
import type { CertificateAdoption } from '../certificates/certificate-adoption.ts'
import { findAcceptedRouter } from '../certificates/client-certificate.ts'
import { type EnrollRequest, REQUEST_ID_NOT_STORED } from './enroll-request.ts'
import { RouterNamingRules } from '../certificates/router-naming-rules.ts'
import {
  isUnknownTokenError,
  findOutstandingEnrollment,
  tokenAlreadyUsedProblem,
} from './enrollment-tokens.ts'
import { toNetworkCommandCertificate } from '../certificates/trusted-authorities.ts'
import { actorForPrincipal, writeOriginForActor } from '../principal/principal.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Clock } from '../../lib/clock.ts'
import { routerRenewalCommandKind } from '../../ports/feature-level.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { NetworkAuthorities } from '../certificates/network-authorities.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { ServiceLogger } from '../../ports/logger.ts'
import type { CommandWriter } from '../../ports/writer.ts'

/** PEM certificates of a router, each followed by its chain. */
interface RouterCertificates {
  readonly cert: string
  readonly serverCert: string
}

interface EnrolledRouter extends RouterCertificates {
  /** Name of the router's record. */
  readonly name: string
}

interface RouterRequests {
  readonly client: string | undefined
  readonly server: string | undefined
}

interface RouterEnrollmentDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly reads: LatestReads
  readonly issuer: CertificateIssuer
  readonly authorities: NetworkAuthorities
  readonly adoption: CertificateAdoption
  readonly cluster: ClusterView
  readonly logger: ServiceLogger
  readonly writer: CommandWriter
  readonly limits: { readonly judgementsMax: number }
}

/**
 * Issues a client and a server certificate: the first ones to a router with an enrollment token,
 * later ones to a router with its current client certificate.
 */
export class RouterEnrollment {
  readonly #deps: RouterEnrollmentDeps
  readonly #certifier: RouterCertifier

  constructor(deps: RouterEnrollmentDeps) {
    this.#deps = deps
    this.#certifier = new RouterNamingRules(deps)
  }

  async enroll(
    request: EnrollRequest,
    token: string | undefined,
    requests: RouterRequests,
  ): Promise<EnrolledRouter> {
    try {
      return await this.#enroll(request, token, requests)
    } catch (error) {
      if (!isUnknownTokenError(error)) throw error
      return await this.#enrollAgain(request, token ?? '', requests)
    }
  }

  async #enroll(
    request: EnrollRequest,
    token: string | undefined,
    requests: RouterRequests,
  ): Promise<EnrolledRouter> {
    const enrollment = await findOutstandingEnrollment(this.#deps, token, ['erott', 'trott'])
    const routerId = enrollment.edgeRouterId || enrollment.transitRouterId
    const issued = await this.#issue(request, routerId, requests, 'enroll')
    const message = create(EnrollSchema, {
      enrollmentId: enrollment.id,
      token: enrollment.token,
      method: enrollment.method,
      credential: { case: 'router', value: commandOf(issued) },
    })
    const { id: enrollmentId, method } = enrollment
    const payload = toBinary(EnrollSchema, message)
    const { address } = request.shown
    const shown = { enrollmentId }
    const principal = { kind: 'enrolling', shown, method, address } as const
    const origin = writeOriginForActor(
      request.write,
      actorForPrincipal(principal),
      REQUEST_ID_NOT_STORED,
    )
    await this.#deps.writer.write(origin, { kind: CommandKind.ENROLL, payload })
    const { client, server } = issued
    const name = this.#deps.state.get('router', routerId)?.name ?? ''
    return { cert: client.chainPem, serverCert: server.chainPem, name }
  }

  /**
   * Answers a router that did not receive the first response: if the request has the router's
   * client key, the router gets its current certificates.
   */
  async #enrollAgain(
    request: EnrollRequest,
    token: string,
    requests: RouterRequests,
  ): Promise<EnrolledRouter> {
    const { state } = this.#deps
    const known =
      token === '' ? undefined : state.find('router', 'enrolledBy', enrollmentTokenDigest(token))
    if (known === undefined) throw new Problem('INVALID_ENROLLMENT_TOKEN')
    const { id, name, certPem, serverCertPem } = known
    if (certPem === null || serverCertPem === null) throw tokenAlreadyUsedProblem()
    const { client } = await this.#issue(request, id, requests, 'extend')
    const [leaf] = parseCertificates(certPem)
    const print = Buffer.from(leaf.publicKeySha256).toString('hex')
    if (client.publicKeyPrint !== print) throw tokenAlreadyUsedProblem()
    return { cert: certPem, serverCert: serverCertPem, name }
  }

  /**
   * Issues new certificates to a router. Only the leaf certificate of the connection authenticates
   * the router, because the TLS handshake proves possession of the leaf's key. The previous
   * certificate stays valid until the router connects with the new certificate, because the
   * response may be lost (ADR 54). At a feature level before these renewals, it is replaced at
   * once.
   */
  async extend(request: EnrollRequest, requests: RouterRequests): Promise<RouterCertificates> {
    const { shown } = request
    const { state } = this.#deps
    // @guard router-extension--first
    const chain = shown.peerChain()
    if (chain === null) throw new Problem('UNAUTHORIZED')
    await this.#deps.reads.reachLatest()
    await this.#deps.adoption.ofRouter(chain, shown.address)
    const router = findAcceptedRouter(this.#deps, chain)
    if (router === null) throw new Problem('UNAUTHORIZED')
    for (const [name, text] of [
      ['certCsr', requests.client],
      ['serverCertCsr', requests.server],
    ] as const) {
      if (text !== undefined && text !== '') continue
      const fault = { field: name, reason: `${name} is required` }
      throw new Problem('COULD_NOT_PROCESS_CSR', { fault })
    }
    const principal = { kind: 'router', routerId: router.id, address: shown.address } as const
    const origin = writeOriginForActor(
      request.write,
      actorForPrincipal(principal),
      REQUEST_ID_NOT_STORED,
    )
    // Two requests of one router may run at the same time, on two controllers. Only one pair of
    // certificates can be pending, so the later request gets the pair of the earlier request if
    // both are for the same keys and hosts.
    return retryWhenRecordsChange(request.write, this.#deps.limits, async () => {
      const { id } = router
      const current = state.get('router', id) ?? router
      const issued = await this.#issue(request, id, requests, 'extend')
      const pending = pendingCertificates(current, issued, this.#deps.clock.nowMs())
      if (pending !== null) return pending
      const message = create(RouterExtendSchema, {
        routerId: id,
        fingerprint: chain[0].sha1,
        certificates: commandOf(issued),
      })
      await this.#deps.writer.write(origin, {
        kind: routerRenewalCommandKind(state.featureLevel),
        payload: toBinary(RouterExtendSchema, message),
        judgedOn: [{ entity: 'router', id, revision: current.revision }],
      })
      const { client, server } = issued
      return { cert: client.chainPem, serverCert: server.chainPem }
    })
  }

  async #issue(
    request: EnrollRequest,
    routerId: string,
    { client, server }: RouterRequests,
    by: keyof RouterCertifier,
  ): Promise<RouterCertificatePair> {
    if (server === undefined || server === '') {
      throw new Problem('MISSING_OR_INVALID_CSR', { detail: 'serverCertCsr is required' })
    }
    if (client === undefined || client === '') {
      throw new Problem('MISSING_OR_INVALID_CSR', { detail: 'certCsr is required' })
    }
    return await this.#certifier[by](routerId, { client, server }, request.shown.address)
  }
}

/**
 * The pending certificates of a router, if they fit a new request: they are for the same keys and
 * hosts, and are not due for renewal. Null otherwise.
 */
function pendingCertificates(
  { nextCertPem, nextServerCertPem, nextCertificateNames }: Router,
  { client, server }: RouterCertificatePair,
  nowMs: number,
): RouterCertificates | null {
  if (nextCertPem === null || nextServerCertPem === null) return null
  const isOf = ([leaf]: readonly [Certificate, ...Certificate[]], issued: IssuedCertificate) =>
    toHex(leaf.publicKeySha256) === issued.publicKeyPrint &&
    nowMs < certificateLifetime(leaf, nowMs).renewAtMs
  const isSame =
    isOf(parseCertificates(nextCertPem), client) &&
    isOf(parseCertificates(nextServerCertPem), server) &&
    [...server.hosts].sort().join(' ') === [...nextCertificateNames].sort().join(' ')
  return isSame ? { cert: nextCertPem, serverCert: nextServerCertPem } : null
}

function commandOf({ client, server }: RouterCertificatePair): object {
  const { chainPem: serverPem, hosts: serverNames } = server
  return { client: toNetworkCommandCertificate(client), serverPem, serverNames }
}
