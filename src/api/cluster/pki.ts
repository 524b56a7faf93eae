import type { PkiControl } from './pki-control.ts'
import { detailResponse, type Reply } from '../http/responses/envelope.ts'
import { requestActor } from '../http/request-context.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import {
  certificateRequestSchema,
  activeCertificatesSchema,
  issuedCertificateSchema,
  issuingAuthorityRequestSchema,
  issuingAuthorityResponseSchema,
  memberCertificateSchema,
  memberCertificateRequestSchema,
} from './pki-schema.ts'
import { findIgnoredFields } from '../schemas/request-body-validator.ts'
import { responseTimeLimits } from './response-time-limits.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'

interface PkiOperationsDeps {
  readonly pki: PkiControl
}

const common = {
  tag: 'pki',
  apis: ['fabric'],
  permission: 'admin',
  success: 200,
  // Served even while the state is unusable, because a cluster without a quorum may need a new
  // certificate to regain the quorum.
  needsNoState: true,
} as const
const post = { ...common, method: 'POST', refusals: [403, 409] } as const

/** Operations on the certificates of this controller, and operations that issue certificates. */
export function pkiOperations(deps: PkiOperationsDeps): Operation[] {
  return [...ownCertificateOperations(deps), ...signingOperations(deps)]
}

function ownCertificateOperations({ pki }: PkiOperationsDeps): Operation[] {
  const response = { kind: 'detail', schema: activeCertificatesSchema } as const
  return [
    {
      ...common,
      operationId: 'pkiCertificates',
      summary: 'Show the certificates that this controller uses, without keys',
      method: 'GET',
      path: '/pki/certificates',
      response,
      handle: () => detailResponse(pki.view()),
    },
    {
      ...post,
      operationId: 'pkiRenew',
      summary: 'Renew the certificate of this controller now, keeping its key',
      path: '/pki/renew',
      response,
      handle: async (call) => detailResponse(await pki.renew(requestActor(call))),
    },
    {
      ...post,
      operationId: 'pkiReload',
      summary: 'Reload the certificate, key and CA files of this controller',
      path: '/pki/reload',
      response,
      handle: async (call) => detailResponse(await pki.reload(requestActor(call))),
    },
  ]
}

/** Operations that issue certificates; only the admin socket serves them. */
function signingOperations({ pki }: PkiOperationsDeps): Operation[] {
  return [
    operationWithBody({
      ...post,
      operationId: 'pkiInstallIssuing',
      summary: 'Rotate the issuing authority of the cluster, under the same root',
      path: '/pki/issuing-authority',
      answerMsMax: responseTimeLimits.installMsMax,
      body: { schema: issuingAuthorityRequestSchema, isRequired: true },
      response: { kind: 'detail', schema: issuingAuthorityResponseSchema },
      handle: async (call, body) => {
        const { certificatePem, privateKeyPem = null } = body
        const given = { certificatePem, privateKeyPem }
        return done(
          body,
          issuingAuthorityRequestSchema,
          await pki.installIssuing(given, requestActor(call)),
        )
      },
    }),
    operationWithBody({
      ...post,
      operationId: 'pkiIssue',
      summary: 'Issue a certificate for an external client or server',
      path: '/pki/issue',
      body: { schema: certificateRequestSchema, isRequired: true },
      response: { kind: 'detail', schema: issuedCertificateSchema },
      handle: async (call, body) => {
        const issued = await pki.issue(body, requestActor(call))
        return done(body, certificateRequestSchema, issued)
      },
    }),
    operationWithBody({
      ...post,
      operationId: 'pkiRenewMember',
      summary:
        'Renew the certificate of a member that cannot renew it itself, for example after expiry',
      path: '/pki/renew-member',
      body: { schema: memberCertificateRequestSchema, isRequired: true },
      response: { kind: 'detail', schema: memberCertificateSchema },
      handle: async (call, body) => {
        const renewed = await pki.renewMember(body.certificatePem, requestActor(call))
        return done(body, memberCertificateRequestSchema, renewed)
      },
    }),
  ]
}

function done(body: JsonObject, { schema }: NamedSchema, data: unknown): Reply {
  return detailResponse(data, findIgnoredFields(schema, body))
}
