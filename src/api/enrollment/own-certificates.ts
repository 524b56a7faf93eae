import { create, toBinary } from '@bufbuild/protobuf'
import type { SessionCertificate } from '../../entities/kinds/session-certificate.ts'
import {
  AuthenticatorExtendSchema,
  AuthenticatorExtendVerifySchema,
  CommandKind,
  SessionCertificateDeleteSchema,
} from '../../../proto/gen/command_pb.ts'
import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem } from '../../lib/problems.ts'
import {
  matchesRecordedCertificate,
  buildNetworkChain,
} from '../../auth/certificates/client-certificate.ts'
import { requestOrigin, type RequestContext } from '../http/request-context.ts'
import { networkAuthoritiesPem, skipRequestDeduplication } from './enrollment-responses.ts'
import {
  envelopeResponse,
  detailResponse,
  emptyResponse,
  type Reply,
} from '../http/responses/envelope.ts'
import { operationWithBody, type Operation } from '../http/operation.ts'
import { parseSingleCertificate } from '../preparers/certificates.ts'
import { listQueryParameters, readListQuery } from '../http/query-parameters.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import {
  extendIdentityEnrollmentSchema,
  identityExtensionCertsSchema,
  confirmExtendedCertificateSchema,
  sessionCertificateCreateSchema,
  sessionCertificateCreatedSchema,
  sessionCertificateDetailSchema,
} from './enrollment-schema.ts'
import { requireCaller } from '../sessions/current-identity.ts'
import { issueSessionCertificate } from '../../auth/sessions/session-certificate.ts'
import { toNetworkCommandCertificate } from '../../auth/certificates/trusted-authorities.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { CertificateIssuer } from '../../ports/certificate-issuer.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'
import {
  type ListResponseSerializer,
  createRowSerializer,
} from '../http/responses/list-response-serializer.ts'
import type { NetworkAuthorities } from '../../auth/certificates/network-authorities.ts'
import type { Clock } from '../../lib/clock.ts'

interface ExtensionDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly authorities: NetworkAuthorities
  readonly issuer: CertificateIssuer
  readonly clock: Clock
  readonly writer: ProposalWriter
  readonly lists: ListResponseSerializer
}

const path = '/current-api-session/certificates'
const BODY_BYTES_MAX = 128 * 1024

/**
 * Operations with which a caller requests certificates for itself: a new certificate for an
 * authenticator, and short-lived certificates for its session.
 */
export function ownCertificateOperations(deps: ExtensionDeps): Operation[] {
  const extension = new Extension(deps)
  const ofSession = new SessionCertificates(deps)
  const both = {
    tag: 'currentIdentity',
    apis: ['client', 'management'],
    // @guard partial-session-certificates--extension
    permission: 'session',
    method: 'POST',
    bodyBytesMax: BODY_BYTES_MAX,
    success: 200,
    refusals: [404, 409],
  } as const
  const client = {
    tag: 'currentApiSession',
    apis: ['client'],
    // @guard partial-session-certificates--session
    permission: 'session',
    success: 200,
  } as const
  const ofId = '/current-identity/authenticators/{id}'
  const verification = (of: Pick<Operation, 'operationId' | 'path'>): Operation =>
    operationWithBody({
      ...both,
      ...of,
      summary: 'Activate the renewed certificate of an authenticator',
      body: { schema: confirmExtendedCertificateSchema, isRequired: true },
      response: { kind: 'detail', schema: emptyBodySchema },
      handle: (call, { clientCert }) => extension.verify(call, clientCert),
    })
  return [
    operationWithBody({
      ...both,
      operationId: 'extendCurrentIdentityAuthenticator',
      summary: 'Renew the certificate of an authenticator; the current one stays valid',
      path: `${ofId}/extend`,
      body: { schema: extendIdentityEnrollmentSchema, isRequired: true },
      response: { kind: 'detail', schema: identityExtensionCertsSchema },
      handle: (call, { clientCertCsr }) => extension.extend(call, clientCertCsr),
    }),
    verification({
      operationId: 'extendVerifyCurrentIdentityAuthenticator',
      path: `${ofId}/extend-verify`,
    }),
    // The same operation at the path in OpenZiti's API document. There, too, the caller can use
    // only its own authenticators.
    verification({
      operationId: 'extendVerifyAuthenticator',
      path: '/authenticators/{id}/extend-verify',
    }),
    {
      ...client,
      operationId: 'listCurrentApiSessionCertificates',
      summary: 'List the certificates of the current API session',
      method: 'GET',
      path,
      query: listQueryParameters,
      response: { kind: 'list', schema: sessionCertificateDetailSchema },
      handle: (call) => ofSession.list(call),
    },
    operationWithBody({
      ...client,
      operationId: 'createCurrentApiSessionCertificate',
      summary: 'Create a certificate of the current API session, for routers',
      method: 'POST',
      path,
      body: { schema: sessionCertificateCreateSchema, isRequired: true },
      bodyBytesMax: BODY_BYTES_MAX,
      success: 201,
      response: { kind: 'detail', schema: sessionCertificateCreatedSchema },
      handle: (call, { csr }) => ofSession.create(call, csr),
    }),
    {
      ...client,
      operationId: 'detailCurrentApiSessionCertificate',
      summary: 'Show a certificate of the current API session',
      method: 'GET',
      path: `${path}/{id}`,
      response: { kind: 'detail', schema: sessionCertificateDetailSchema },
      refusals: [404],
      handle: (call) => ofSession.detail(call),
    },
    {
      ...client,
      operationId: 'deleteCurrentApiSessionCertificate',
      summary: 'Delete a certificate of the current API session',
      method: 'DELETE',
      path: `${path}/{id}`,
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404],
      handle: (call) => ofSession.remove(call),
    },
  ]
}

class Extension {
  readonly #deps: ExtensionDeps

  constructor(deps: ExtensionDeps) {
    this.#deps = deps
  }

  /**
   * Extends a certificate. The connection must use the current certificate, which proves possession
   * of its key.
   */
  async extend(call: RequestContext, requestPem: string): Promise<Reply> {
    const { id, isIssuedByNetwork, certPem, identityId, fingerprint } = await this.#own(call)
    if (!isIssuedByNetwork || certPem === null) throw notExtendable()
    const chain = call.credentials.peerChain()
    if (chain === null) throw new Problem('UNAUTHORIZED')
    const [leaf] = chain
    // @guard fingerprint-collision--extension
    if (!matchesRecordedCertificate(leaf, certPem)) throw new Problem('UNAUTHORIZED')
    const question = { chain, requiresClientAuth: true, leafTime: 'reported' } as const
    if (!buildNetworkChain(this.#deps, question).ok) throw new Problem('UNAUTHORIZED')
    const order = { identityId, currentPem: certPem, requestPem }
    const issued = await this.#deps.issuer.extend(order, identityId)
    skipRequestDeduplication(call)
    const message = create(AuthenticatorExtendSchema, {
      id,
      fingerprint: fingerprint ?? '',
      certificate: toNetworkCommandCertificate(issued),
    })
    const payload = toBinary(AuthenticatorExtendSchema, message)
    await this.#deps.writer.write(requestOrigin(call), {
      kind: CommandKind.AUTHENTICATOR_EXTEND,
      payload,
    })
    return detailResponse({ ca: networkAuthoritiesPem(this.#deps), clientCert: issued.chainPem })
  }

  async verify(call: RequestContext, clientCert: string): Promise<Reply> {
    const { id } = await this.#own(call)
    const fingerprint = fingerprintOf(clientCert)
    const message = create(AuthenticatorExtendVerifySchema, { id, fingerprint })
    const payload = toBinary(AuthenticatorExtendVerifySchema, message)
    await this.#deps.writer.write(requestOrigin(call), {
      kind: CommandKind.AUTHENTICATOR_EXTEND_VERIFY,
      payload,
    })
    return emptyResponse()
  }

  /**
   * The caller's authenticator.
   * @throws {Problem} NOT_FOUND; UNAUTHORIZED for authenticators of other identities;
   * CAN_NOT_UPDATE_AUTHENTICATOR for a password.
   */
  async #own(call: RequestContext): Promise<Authenticator> {
    const id = call.param('id')
    const callerId = requireCaller(call).identity.id
    const own = await this.#deps.reads.latest(() => this.#deps.state.get('authenticator', id))
    if (own === undefined) {
      throw new Problem('NOT_FOUND', { detail: `authenticator with id ${id} not found` })
    }
    if (own.identityId !== callerId) throw new Problem('UNAUTHORIZED')
    if (own.method !== 'cert') throw notExtendable()
    return own
  }
}

function notExtendable(): Problem {
  return new Problem('CAN_NOT_UPDATE_AUTHENTICATOR', {
    detail: 'only certificates issued by the network can be renewed',
  })
}

/**
 * Fingerprint of the first certificate in a PEM text, because clients send back the whole chain
 * that they received.
 */
function fingerprintOf(pem: string): string {
  const end = '-----END CERTIFICATE-----'
  const at = pem.indexOf(end)
  const first = at < 0 ? pem : pem.slice(0, at + end.length)
  return parseSingleCertificate(first, 'COULD_NOT_PARSE_PEM_BLOCK').sha1
}

/**
 * Operations on the certificates of the caller's session. For certificates of other sessions the
 * response is 404.
 */
class SessionCertificates {
  readonly #deps: ExtensionDeps

  constructor(deps: ExtensionDeps) {
    this.#deps = deps
  }

  list(call: RequestContext): Reply | Promise<Reply> {
    const { state } = this.#deps
    const { session } = requireCaller(call)
    const query = readListQuery(call)
    const found = state.listNaming('sessionCertificate', 'apiSessionId', session.id, query)
    const { records, ...pagination } = found
    return this.#deps.lists.answer(call, {
      records,
      serialize: createRowSerializer((record) => this.#view(record)),
      pagination,
      filterableFields: state.filterableFields('sessionCertificate'),
    })
  }

  async create(call: RequestContext, requestPem: string): Promise<Reply> {
    const { session, identity } = requireCaller(call)
    const order = { identityId: identity.id, apiSessionId: session.id, requestPem }
    const { id, chainPem, payload } = await issueSessionCertificate(this.#deps.issuer, order)
    skipRequestDeduplication(call)
    await this.#deps.writer.write(requestOrigin(call), {
      kind: CommandKind.SESSION_CERTIFICATE_CREATE,
      payload,
    })
    return envelopeResponse(201, {
      _links: { self: { href: `.${path}/${id}` } },
      id,
      certificate: chainPem,
      cas: networkAuthoritiesPem(this.#deps),
    })
  }

  detail(call: RequestContext): Reply | Promise<Reply> {
    const id = call.param('id')
    return this.#deps.reads.found(call, `certificate with id ${id}`, () => {
      const record = this.#deps.state.get('sessionCertificate', id)
      // @guard objects-of-others--certificate
      if (record?.apiSessionId !== requireCaller(call).session.id) return null
      return detailResponse(this.#view(record))
    })
  }

  async remove(call: RequestContext): Promise<Reply> {
    const message = create(SessionCertificateDeleteSchema, {
      id: call.param('id'),
      apiSessionId: requireCaller(call).session.id,
    })
    const payload = toBinary(SessionCertificateDeleteSchema, message)
    await this.#deps.writer.write(requestOrigin(call), {
      kind: CommandKind.SESSION_CERTIFICATE_DELETE,
      payload,
    })
    return emptyResponse()
  }

  #view(record: SessionCertificate): JsonObject {
    const detail = this.#deps.state.detail('sessionCertificate', record, '')
    return { ...detail, _links: { self: { href: `.${path}/${record.id}` } } }
  }
}
