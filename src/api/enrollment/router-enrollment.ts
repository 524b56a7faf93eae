import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, EnrollSchema, RouterExtendSchema } from '../../../proto/gen/command_pb.ts'
import type { Router } from '../../entities/kinds/router.ts'
import { digestOf } from '../../fsm/enrollment/enrollment.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { enrollmentActor } from '../../ports/actor.ts'
import type { RouterCertificatePair, RouterCertifier } from '../../ports/certificate-issuer.ts'
import { parseCertificates } from '../../pki/certificate.ts'
import { routerOf } from '../auth/client-certificate.ts'
import { originOf, type RequestContext } from '../call.ts'
import type { Reply } from '../answers/envelope.ts'
import type { ApiParts } from '../parts.ts'
import type { ApiServices } from '../records/services.ts'
import { certificatesAnswer, answerThisCallAlone, networkCertificate } from './answers.ts'
import { RouterNamingRules } from './router-naming-rules.ts'
import { isTokenUnknown, outstanding, tokenUsed } from './tokens.ts'

export interface RouterRequests {
  readonly client: string | undefined
  readonly server: string | undefined
}

/**
 * Routers get a client and a server certificate by their token, and new ones by the client
 * certificate that they have.
 */
export class RouterEnrollment {
  readonly #parts: ApiParts
  readonly #services: Pick<ApiServices, 'writer'>
  readonly #certifier: RouterCertifier

  constructor(parts: ApiParts, services: Pick<ApiServices, 'writer'>) {
    this.#parts = parts
    this.#certifier = new RouterNamingRules(parts)
    this.#services = services
  }

  async enroll(
    call: RequestContext,
    token: string | undefined,
    requests: RouterRequests,
  ): Promise<Reply> {
    try {
      return await this.#enroll(call, token, requests)
    } catch (error) {
      if (!isTokenUnknown(error)) throw error
      return await this.#enrollAgain(call, token ?? '', requests)
    }
  }

  async #enroll(
    call: RequestContext,
    token: string | undefined,
    requests: RouterRequests,
  ): Promise<Reply> {
    const enrollment = await outstanding(this.#parts, token, ['erott', 'trott'])
    const routerId = enrollment.edgeRouterId || enrollment.transitRouterId
    const issued = await this.#issue(call, routerId, requests, 'enroll')
    const message = create(EnrollSchema, {
      enrollmentId: enrollment.id,
      token: enrollment.token,
      method: enrollment.method,
      credential: { case: 'router', value: commandOf(issued) },
    })
    const { id: enrollmentId, method } = enrollment
    const payload = toBinary(EnrollSchema, message)
    const actor = enrollmentActor({ enrollmentId }, { method, address: call.credentials.address })
    await this.#services.writer.write(originOf(call, actor), { kind: CommandKind.ENROLL, payload })
    const { client, server } = issued
    return certificatesAnswer(this.#parts, { cert: client.chainPem, serverCert: server.chainPem })
  }

  /** A router that lost the answer asks with the same keys, and is given the same certificates. */
  async #enrollAgain(
    call: RequestContext,
    token: string,
    requests: RouterRequests,
  ): Promise<Reply> {
    const { state } = this.#parts
    const known = token === '' ? undefined : state.find('router', 'enrolledBy', digestOf(token))
    if (known === undefined) throw new Problem('INVALID_ENROLLMENT_TOKEN')
    const { id, certPem, serverCertPem } = known as Router
    if (certPem === null || serverCertPem === null) throw tokenUsed()
    const { client } = await this.#issue(call, id, requests, 'extend')
    const [leaf] = parseCertificates(certPem)
    const print = Buffer.from(leaf.publicKeySha256).toString('hex')
    if (client.publicKeyPrint !== print) throw tokenUsed()
    return certificatesAnswer(this.#parts, { cert: certPem, serverCert: serverCertPem })
  }

  /** Only by the certificate at index 0 of the connection, whose key the handshake proved. */
  async extend(call: RequestContext, requests: RouterRequests): Promise<Reply> {
    const chain = call.credentials.peerChain()
    if (chain === null) throw new Problem('UNAUTHORIZED')
    await this.#parts.reads.reachLatest()
    const router = routerOf(this.#parts, chain)
    if (router === null) throw new Problem('UNAUTHORIZED')
    for (const [name, request] of [
      ['certCsr', requests.client],
      ['serverCertCsr', requests.server],
    ] as const) {
      if (request === undefined || request === '') throw fieldProblem(name, `${name} is required`)
    }
    const issued = await this.#issue(call, router.id, requests, 'extend')
    const message = create(RouterExtendSchema, {
      routerId: router.id,
      fingerprint: chain[0].sha1,
      certificates: commandOf(issued),
    })
    const payload = toBinary(RouterExtendSchema, message)
    const shown = { routerId: router.id }
    const actor = enrollmentActor(shown, { method: 'extend', address: call.credentials.address })
    await this.#services.writer.write(originOf(call, actor), {
      kind: CommandKind.ROUTER_EXTEND,
      payload,
    })
    const { client, server } = issued
    return certificatesAnswer(this.#parts, { cert: client.chainPem, serverCert: server.chainPem })
  }

  async #issue(
    call: RequestContext,
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
    const issued = await this.#certifier[by](routerId, { client, server }, call.credentials.address)
    answerThisCallAlone(call)
    return issued
  }
}

function commandOf({ client, server }: RouterCertificatePair): object {
  const { chainPem: serverPem, hosts: serverNames } = server
  return { client: networkCertificate(client), serverPem, serverNames }
}
