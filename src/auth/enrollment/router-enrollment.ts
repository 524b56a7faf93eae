import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, EnrollSchema, RouterExtendSchema } from '../../../proto/gen/command_pb.ts'
import { enrollmentTokenDigest } from '../../fsm/enrollment/enrollment.ts'
import { Problem } from '../../lib/problems.ts'
import type {
  CertificateIssuer,
  RouterCertificatePair,
  RouterCertifier,
} from '../../ports/certificate-issuer.ts'
import { parseCertificates } from '../../pki/certificate.ts'
import { acceptedRouter } from '../certificates/client-certificate.ts'
import { type EnrollRequest, NO_REQUEST_ID_KEPT } from './enroll-request.ts'
import { RouterNamingRules } from '../certificates/router-naming-rules.ts'
import { isTokenUnknown, findOutstandingEnrollment, tokenUsedProblem } from './tokens.ts'
import { networkCertificate } from '../certificates/trusted-authorities.ts'
import { principalActor, principalOrigin } from '../principal/principal.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Clock } from '../../lib/clock.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'
import type { NetworkAuthorities } from '../certificates/network-authorities.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { ServiceLogger } from '../../ports/logger.ts'
import type { CommandWriter } from '../../ports/writer.ts'

/** Certificates in PEM, each with its chain. */
interface RouterCertificates {
  readonly cert: string
  readonly serverCert: string
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
  readonly cluster: ClusterView
  readonly logger: ServiceLogger
  readonly writer: CommandWriter
}

/**
 * Issues a client and a server certificate to a router with an enrollment token, and new ones to a
 * router with its current client certificate.
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
  ): Promise<RouterCertificates> {
    try {
      return await this.#enroll(request, token, requests)
    } catch (error) {
      if (!isTokenUnknown(error)) throw error
      return await this.#enrollAgain(request, token ?? '', requests)
    }
  }

  async #enroll(
    request: EnrollRequest,
    token: string | undefined,
    requests: RouterRequests,
  ): Promise<RouterCertificates> {
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
    const origin = principalOrigin(request.write, principalActor(principal), NO_REQUEST_ID_KEPT)
    await this.#deps.writer.write(origin, { kind: CommandKind.ENROLL, payload })
    const { client, server } = issued
    return { cert: client.chainPem, serverCert: server.chainPem }
  }

  /**
   * A router that lost the answer repeats its request with the same keys and gets the same
   * certificates.
   */
  async #enrollAgain(
    request: EnrollRequest,
    token: string,
    requests: RouterRequests,
  ): Promise<RouterCertificates> {
    const { state } = this.#deps
    const known =
      token === '' ? undefined : state.find('router', 'enrolledBy', enrollmentTokenDigest(token))
    if (known === undefined) throw new Problem('INVALID_ENROLLMENT_TOKEN')
    const { id, certPem, serverCertPem } = known
    if (certPem === null || serverCertPem === null) throw tokenUsedProblem()
    const { client } = await this.#issue(request, id, requests, 'extend')
    const [leaf] = parseCertificates(certPem)
    const print = Buffer.from(leaf.publicKeySha256).toString('hex')
    if (client.publicKeyPrint !== print) throw tokenUsedProblem()
    return { cert: certPem, serverCert: serverCertPem }
  }

  /**
   * Authenticates the router only by the leaf certificate of the connection, because the handshake
   * proved possession of its key.
   */
  async extend(request: EnrollRequest, requests: RouterRequests): Promise<RouterCertificates> {
    const { shown } = request
    // @guard router-extension--first
    const chain = shown.peerChain()
    if (chain === null) throw new Problem('UNAUTHORIZED')
    await this.#deps.reads.reachLatest()
    const router = acceptedRouter(this.#deps, chain)
    if (router === null) throw new Problem('UNAUTHORIZED')
    for (const [name, text] of [
      ['certCsr', requests.client],
      ['serverCertCsr', requests.server],
    ] as const) {
      if (text !== undefined && text !== '') continue
      const fault = { field: name, reason: `${name} is required` }
      throw new Problem('COULD_NOT_PROCESS_CSR', { fault })
    }
    const issued = await this.#issue(request, router.id, requests, 'extend')
    const message = create(RouterExtendSchema, {
      routerId: router.id,
      fingerprint: chain[0].sha1,
      certificates: commandOf(issued),
    })
    const payload = toBinary(RouterExtendSchema, message)
    const { address } = shown
    const principal = { kind: 'router', routerId: router.id, address } as const
    const origin = principalOrigin(request.write, principalActor(principal), NO_REQUEST_ID_KEPT)
    await this.#deps.writer.write(origin, {
      kind: CommandKind.ROUTER_EXTEND,
      payload,
    })
    const { client, server } = issued
    return { cert: client.chainPem, serverCert: server.chainPem }
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

function commandOf({ client, server }: RouterCertificatePair): object {
  const { chainPem: serverPem, hosts: serverNames } = server
  return { client: networkCertificate(client), serverPem, serverNames }
}
