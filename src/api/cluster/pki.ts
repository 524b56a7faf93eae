import type { PkiControl } from './pki-control.ts'
import { detailAnswer, type Reply } from '../http/answers/envelope.ts'
import { callActor } from '../http/call.ts'
import { type Operation, withBody } from '../http/operation.ts'
import {
  certificateRequest,
  certificatesInForce,
  issuedCertificate,
  issuingAuthorityRequest,
  issuingAuthorityAnswer,
  memberCertificate,
  memberCertificateRequest,
} from './pki-schema.ts'
import { findIgnoredFields } from '../schemas/validation.ts'
import { responseTimeLimits } from './answer-times.ts'
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
  // Served without current state: a cluster without a quorum may need a new certificate to regain
  // the quorum.
  needsNoState: true,
} as const
const post = { ...common, method: 'POST', refusals: [403, 409] } as const

/** Operations on the certificates of this controller, and on those that the cluster issues. */
export function pkiOperations(deps: PkiOperationsDeps): Operation[] {
  return [...ownCertificateOperations(deps), ...signingOperations(deps)]
}

function ownCertificateOperations({ pki }: PkiOperationsDeps): Operation[] {
  const response = { kind: 'detail', schema: certificatesInForce } as const
  return [
    {
      ...common,
      operationId: 'pkiCertificates',
      summary: 'Show the certificates that this controller uses, without keys',
      method: 'GET',
      path: '/pki/certificates',
      response,
      handle: () => detailAnswer(pki.view()),
    },
    {
      ...post,
      operationId: 'pkiRenew',
      summary: 'Renew the certificate of this controller now, keeping its key',
      path: '/pki/renew',
      response,
      handle: async (call) => detailAnswer(await pki.renew(callActor(call))),
    },
    {
      ...post,
      operationId: 'pkiReload',
      summary: 'Reload the certificate, key and CA files of this controller',
      path: '/pki/reload',
      response,
      handle: async (call) => detailAnswer(await pki.reload(callActor(call))),
    },
  ]
}

/** Signing operations, which only the admin socket serves. */
function signingOperations({ pki }: PkiOperationsDeps): Operation[] {
  return [
    withBody({
      ...post,
      operationId: 'pkiInstallIssuing',
      summary: 'Rotate the issuing authority of the cluster, under the same root',
      path: '/pki/issuing-authority',
      answerMsMax: responseTimeLimits.installMsMax,
      body: { schema: issuingAuthorityRequest, isRequired: true },
      response: { kind: 'detail', schema: issuingAuthorityAnswer },
      handle: async (call, body) => {
        const { certificatePem, privateKeyPem = null } = body
        const given = { certificatePem, privateKeyPem }
        return done(body, issuingAuthorityRequest, await pki.installIssuing(given, callActor(call)))
      },
    }),
    withBody({
      ...post,
      operationId: 'pkiIssue',
      summary: 'Issue a certificate for an external client or server',
      path: '/pki/issue',
      body: { schema: certificateRequest, isRequired: true },
      response: { kind: 'detail', schema: issuedCertificate },
      handle: async (call, body) => {
        const issued = await pki.issue(body, callActor(call))
        return done(body, certificateRequest, issued)
      },
    }),
    withBody({
      ...post,
      operationId: 'pkiRenewMember',
      summary: 'Renew the certificate of a member that expired while it was offline',
      path: '/pki/renew-member',
      body: { schema: memberCertificateRequest, isRequired: true },
      response: { kind: 'detail', schema: memberCertificate },
      handle: async (call, body) => {
        const renewed = await pki.renewMember(body.certificatePem, callActor(call))
        return done(body, memberCertificateRequest, renewed)
      },
    }),
  ]
}

function done(body: JsonObject, { schema }: NamedSchema, data: unknown): Reply {
  return detailAnswer(data, findIgnoredFields(schema, body))
}
