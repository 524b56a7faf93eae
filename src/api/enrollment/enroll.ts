import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { type RequestContext, toWriteRequest } from '../http/request-context.ts'
import { CaEnrollment } from '../../auth/enrollment/ca-enrollment.ts'
import {
  networkAuthoritiesPem,
  issuedCertificatesResponse,
  enrolledIdentityResponse,
} from './enrollment-responses.ts'
import type { EnrollRequest } from '../../auth/enrollment/enroll-request.ts'
import { IdentityEnrollment } from '../../auth/enrollment/identity-enrollment.ts'
import { TokenEnrollment } from '../../auth/enrollment/token-enrollment.ts'
import { RouterEnrollment } from '../../auth/enrollment/router-enrollment.ts'
import { responseWithoutEnvelope, emptyResponse, type Reply } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { tokenEnrollmentMethod } from '../../auth/enrollment/enrollment-tokens.ts'
import { declareQueryParameters } from '../http/query-parameters.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import {
  caEnrollmentSchema,
  enrollmentChallengeSchema,
  challengeSignatureSchema,
  enrolledIdentitySchema,
  anyEnrollmentResponseSchema,
  enrolledUpdbSchema,
  enrollmentCertsSchema,
  genericEnrollmentSchema,
  jwkSetSchema,
  ottEnrollmentSchema,
  routerEnrollmentSchema,
  extendRouterEnrollmentSchema,
  tokenEnrollmentSchema,
  updbEnrollmentSchema,
} from './enrollment-schema.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { CertificateAdoption } from '../../auth/certificates/certificate-adoption.ts'
import type { NetworkAuthorities } from '../../auth/certificates/network-authorities.ts'
import type { CertificateIssuer } from '../../ports/certificate-issuer.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ApiLimits } from '../limits.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'
import type { ServiceLogger } from '../../ports/logger.ts'
import type { TokenVerifier } from '../../auth/tokens/token-verifier.ts'
import type { PasswordVerifier } from '../../auth/factors/password-verifier.ts'
import { parseUuid } from '../../lib/text/uuid.ts'

interface EnrollOperationsDeps {
  readonly cluster: ClusterView
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly jwt: JwtSigner
  readonly authorities: NetworkAuthorities
  readonly adoption: CertificateAdoption
  readonly issuer: CertificateIssuer
  readonly clock: Clock
  readonly limits: ApiLimits
  readonly logger: ServiceLogger
  readonly externalTokens: TokenVerifier
  readonly passwords: PasswordVerifier
  readonly writer: ProposalWriter
}

/**
 * Maximum bytes of an enrollment body: enough for two certificate requests with the longest keys,
 * and for the other members.
 */
const BODY_BYTES_MAX = 64 * 1024
/** Content types with which OpenZiti clients send a certificate request alone, without JSON. */
const REQUEST_TYPES = ['application/x-pem-file', 'application/pkcs7', 'text/plain']
/** Header in which OpenZiti clients name the external JWT signer. */
const SIGNER_HEADER = 'ziti-token-issuer-id'

/**
 * A PEM certificate request, or an object with the fields that the enrollment method requires.
 */
type EnrollBody = string | JsonObject
type Enroll = (call: RequestContext, body: EnrollBody) => Promise<Reply>

const common = {
  tag: 'enroll',
  apis: ['client'],
  permission: 'public',
  method: 'POST',
  bodyBytesMax: BODY_BYTES_MAX,
  success: 200,
} as const
const token = declareQueryParameters(['token'])
const certificates = { kind: 'detail', schema: enrollmentCertsSchema } as const
const refusals = [404, 409]

/**
 * Operations with which identities and routers enroll. `/enroll?method=NAME` is equivalent to the
 * path of that method; only `trott` has no path of this kind.
 */
export function tokenEnrollmentOperations(deps: EnrollOperationsDeps): Operation[] {
  const routers = new RouterEnrollment(deps)
  const byMethod = enrollmentsByMethod(deps, routers)
  return [
    operationWithBody({
      ...common,
      operationId: 'enroll',
      summary: 'Enroll an identity or a router with its token',
      path: '/enroll',
      query: declareQueryParameters(['token', 'method']),
      body: { schema: genericEnrollmentSchema, isRequired: false, textTypes: REQUEST_TYPES },
      response: { kind: 'detail', schema: anyEnrollmentResponseSchema },
      refusals: [...refusals, 410],
      handle: async (call, body) => {
        const method =
          call.first('method') ?? (await tokenEnrollmentMethod(deps, tokenIn(call, body)))
        const enroll = (byMethod as Readonly<Record<string, Enroll>>)[method]
        if (Object.hasOwn(byMethod, method) && enroll !== undefined) return enroll(call, body)
        throw new Problem('INVALID_ENROLL_METHOD', {
          detail: `method is one of ${Object.keys(byMethod).join(', ')}`,
        })
      },
    }),
    ...identityOperations(byMethod),
    operationWithBody({
      ...common,
      operationId: 'enrollErOtt',
      summary: 'Enroll a router with a one-time token (erott)',
      path: '/enroll/erott',
      query: token,
      body: { schema: routerEnrollmentSchema, isRequired: true },
      response: certificates,
      refusals,
      handle: byMethod.erott,
    }),
    operationWithBody({
      ...common,
      operationId: 'extendRouterEnrollment',
      summary: 'Renew the certificates of a router',
      path: '/enroll/extend/router',
      body: { schema: extendRouterEnrollmentSchema, isRequired: true },
      response: certificates,
      refusals: [401],
      handle: async (call, { certCsr, serverCertCsr }) => {
        const requests = { client: certCsr || undefined, server: serverCertCsr || undefined }
        return issuedCertificatesResponse(deps, await routers.extend(enrolling(call), requests))
      },
    }),
    ...keyOperations(deps),
  ]
}

function enrollmentsByMethod(
  deps: EnrollOperationsDeps & EnrollOperationsDeps,
  routers: RouterEnrollment,
) {
  const identities = new IdentityEnrollment(deps)
  const byCa = new CaEnrollment(deps)
  const byToken = new TokenEnrollment(deps)
  const router: Enroll = async (call, body) => {
    const requests = {
      client: textIn(body, 'certCsr') ?? textIn(body, 'clientCsr'),
      server: textIn(body, 'serverCertCsr') ?? textIn(body, 'serverCsr'),
    }
    const issued = await routers.enroll(enrolling(call), tokenIn(call, body), requests)
    return issuedCertificatesResponse(deps, issued)
  }
  return {
    ott: async (call, body) => {
      const cert = await identities.ott(enrolling(call), tokenIn(call, body), requestIn(body))
      const ca = networkAuthoritiesPem(deps)
      // `serverCert` is empty: an identity has no server certificate, but OpenZiti clients read the
      // field.
      return enrolledIdentityResponse(deps, { ca, cert, serverCert: '' })
    },
    ottca: async (call, body) => {
      await identities.ottca(enrolling(call), tokenIn(call, body))
      return enrolledIdentityResponse(deps)
    },
    updb: async (call, body) => {
      const password = textIn(body, 'password')
      const username = await identities.updb(enrolling(call), tokenIn(call, body), password)
      return enrolledIdentityResponse(deps, { username })
    },
    ca: async (call, body) => {
      await byCa.enroll(enrolling(call), textIn(body, 'name'))
      return emptyResponse()
    },
    erott: router,
    trott: router,
    token: async (call, body) => {
      const signerId = call.headers[SIGNER_HEADER] || undefined
      const cert = await byToken.enroll(enrolling(call), requestOrNone(body), signerId)
      return cert === null
        ? enrolledIdentityResponse(deps)
        : enrolledIdentityResponse(deps, { ca: networkAuthoritiesPem(deps), cert })
    },
  } satisfies Record<string, Enroll>
}

function identityOperations(
  byMethod: Readonly<Record<'ott' | 'ottca' | 'ca' | 'token' | 'updb', Enroll>>,
): Operation[] {
  return [
    operationWithBody({
      ...common,
      operationId: 'enrollOtt',
      summary: 'Enroll an identity with a one-time token (ott)',
      path: '/enroll/ott',
      query: token,
      body: { schema: ottEnrollmentSchema, isRequired: false, textTypes: REQUEST_TYPES },
      response: certificates,
      refusals,
      handle: byMethod.ott,
    }),
    operationWithBody({
      ...common,
      operationId: 'enrollOttCa',
      summary: 'Enroll an identity with the client certificate of the connection (ottca)',
      path: '/enroll/ottca',
      query: token,
      body: { schema: ottEnrollmentSchema, isRequired: false, textTypes: REQUEST_TYPES },
      response: { kind: 'detail', schema: enrolledIdentitySchema },
      refusals,
      handle: byMethod.ottca,
    }),
    operationWithBody({
      ...common,
      operationId: 'enrollCa',
      summary: 'Enroll a new identity with a certificate of a CA (ca)',
      path: '/enroll/ca',
      body: { schema: caEnrollmentSchema, isRequired: false },
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals,
      handle: byMethod.ca,
    }),
    operationWithBody({
      ...common,
      operationId: 'enrollToken',
      summary: 'Enroll a new identity with a token of an external JWT signer',
      path: '/enroll/token',
      headers: [
        { name: 'authorization', description: 'Bearer, and the token' },
        { name: SIGNER_HEADER, description: 'id of the external JWT signer of the token' },
      ],
      body: { schema: tokenEnrollmentSchema, isRequired: true },
      response: certificates,
      refusals: [...refusals, 410],
      handle: byMethod.token,
    }),
    operationWithBody({
      ...common,
      operationId: 'enrollUpdb',
      summary: 'Enroll an identity with user name and password (updb)',
      path: '/enroll/updb',
      query: token.map((parameter) => ({ ...parameter, isRequired: true })),
      body: { schema: updbEnrollmentSchema, isRequired: true },
      response: { kind: 'detail', schema: enrolledUpdbSchema },
      refusals,
      handle: byMethod.updb,
    }),
  ]
}

/** Operations on the keys that sign enrollment tokens. */
function keyOperations(deps: EnrollOperationsDeps): Operation[] {
  return [
    operationWithBody({
      ...common,
      operationId: 'enrollmentChallenge',
      summary: 'Sign a nonce with the key of enrollment tokens',
      path: '/enroll/challenge',
      body: { schema: enrollmentChallengeSchema, isRequired: true },
      response: { kind: 'bare', schema: challengeSignatureSchema },
      handle: async (_call, { keyId, nonce }) => {
        // Only a UUID is signed: a signature over arbitrary text would allow the sender to forge a
        // token.
        // @guard enrollment-texts--nonce
        if (parseUuid(nonce) === null)
          throw fieldProblem('nonce', 'must be a UUID', nonce.slice(0, 64))
        if (keyId !== deps.jwt.publicJwk()['kid']) {
          throw fieldProblem('keyId', 'is not a key of this controller', keyId.slice(0, 64))
        }
        const signed = await deps.jwt.signText(nonce)
        return responseWithoutEnvelope(
          JSON.stringify({ ...signed, caPool: networkAuthoritiesPem(deps) }),
        )
      },
    }),
    {
      operationId: 'getEnrollmentJwks',
      summary: 'Get the public key of enrollment tokens of this controller',
      tag: 'enroll',
      apis: ['client'],
      permission: 'public',
      method: 'GET',
      path: '/enroll/jwks',
      success: 200,
      response: { kind: 'bare', schema: jwkSetSchema },
      handle: () => responseWithoutEnvelope(JSON.stringify({ keys: [deps.jwt.publicJwk()] })),
    },
  ]
}

function enrolling(call: RequestContext): EnrollRequest {
  return { write: toWriteRequest(call), shown: call.credentials, turn: call }
}

/** The token in the query or, without one, in the body. */
function tokenIn(call: RequestContext, body: EnrollBody): string | undefined {
  return call.first('token') ?? textIn(body, 'token')
}

function requestIn(body: EnrollBody): string | undefined {
  if (typeof body === 'string') return body
  return textIn(body, 'clientCsr') ?? textIn(body, 'certCsr')
}

/**
 * The certificate request in the body; undefined if there is none. An empty `clientCsr` is refused,
 * not ignored.
 */
function requestOrNone(body: EnrollBody): string | undefined {
  const csr = requestIn(body)
  if (csr !== undefined || typeof body === 'string') return csr
  const { clientCsr } = body
  if (clientCsr === undefined || clientCsr === null) return undefined
  throw new Problem('COULD_NOT_PROCESS_CSR', { detail: 'clientCsr is empty' })
}

/**
 * A string member of a JSON body; undefined if it is absent, null or empty, or if the body is not
 * JSON.
 */
function textIn(body: EnrollBody, name: string): string | undefined {
  const value = typeof body === 'string' ? undefined : body[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}
