import { create, toBinary } from '@bufbuild/protobuf'
import { CaVerifySchema, CommandKind } from '../../../proto/gen/command_pb.ts'
import type { Ca } from '../../entities/kinds/ca.ts'
import { Problem } from '../../lib/problems.ts'
import { CertificateError, checkCertificateChain, parseCertificate } from '../../pki/certificate.ts'
import { readPemBlocks } from '../../pki/pem.ts'
import { requestOrigin, type RequestContext } from '../http/request-context.ts'
import { responseWithoutEnvelope, emptyResponse } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { parseDerCertificate } from '../preparers/certificates.ts'
import { caJwtSchema, caVerificationSchema } from '../identities/identities-schema.ts'
import { emptyBodySchema } from '../schemas/envelope.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ApiVersionsKey } from '../api-deps.ts'
import type { ProposalWriter } from '../http/proposal-writer.ts'

interface CaOperationsDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly jwt: JwtSigner
  readonly clock: Clock
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
  readonly writer: ProposalWriter
}

const pemBytesMax = 64 * 1024

/** Operations on third-party CAs, in addition to reading and writing their fields. */
export function caOperations(deps: CaOperationsDeps): Operation[] {
  const { writer } = deps
  const common = { tag: 'cas', apis: ['management'], success: 200 } as const
  return [
    operationWithBody({
      ...common,
      operationId: 'verifyCa',
      summary: 'Verify a CA with a certificate that it has issued for its verification token',
      permission: 'ca.update',
      method: 'POST',
      path: '/cas/{id}/verify',
      body: { schema: caVerificationSchema, isRequired: true, type: 'text/plain' },
      bodyBytesMax: pemBytesMax,
      response: { kind: 'detail', schema: emptyBodySchema },
      refusals: [404, 409],
      handle: async (call, pem) => {
        const ca = await caOf(deps, call)
        try {
          checkProof(pem, ca, deps.clock.nowMs())
        } catch (error) {
          throw ca.isVerified ? new Problem('CA_ALREADY_VERIFIED') : error
        }
        // Submits the entry even if the CA is already verified, because this request may repeat the
        // one that verified the CA. The state machine decides whether to refuse the entry.
        const payload = toBinary(CaVerifySchema, create(CaVerifySchema, { id: ca.id }))
        await writer.write(requestOrigin(call), { kind: CommandKind.CA_VERIFY, payload })
        return emptyResponse()
      },
    }),
    {
      ...common,
      operationId: 'getCaJwt',
      summary: 'Get the enrollment token of a CA',
      permission: 'ca.read',
      method: 'GET',
      path: '/cas/{id}/jwt',
      response: {
        kind: 'bare',
        schema: caJwtSchema,
        types: ['application/jwt'],
        ignoresAccept: true,
      },
      refusals: [404],
      handle: async (call) => {
        const { id } = await caOf(deps, call)
        const [address] = deps.bindings['edge-client'] ?? []
        if (address === undefined) {
          throw new Problem('NOT_FOUND', {
            detail: 'this controller does not serve the client API',
          })
        }
        // As in OpenZiti, the token does not expire, because it is useless without a certificate of
        // the CA.
        const claims = {
          iss: `${address}/`,
          sub: id,
          jti: id,
          aud: ['openziti-enroller'],
          em: 'ca',
          ctrls: null,
        }
        return responseWithoutEnvelope(await deps.jwt.sign(claims), 'application/jwt')
      },
    },
  ]
}

async function caOf(deps: CaOperationsDeps, call: RequestContext): Promise<Ca> {
  const id = call.param('id')
  const ca = await deps.reads.latest(() => deps.state.get('ca', id))
  if (ca === undefined) throw new Problem('NOT_FOUND', { detail: `ca with id ${id} not found` })
  return ca
}

/**
 * Checks the certificate that proves control of a CA.
 * @throws {Problem} with the fault of the certificate.
 */
function checkProof(pem: string, ca: Ca, nowMs: number): void {
  const [block] = readPemBlocks(pem, 1)
  if (block === undefined) {
    throw new Problem('COULD_NOT_PARSE_BODY', { detail: 'the body has no PEM block' })
  }
  if (block.label !== 'CERTIFICATE') throw new Problem('EXPECTED_PEM_CERTIFICATE')
  const certificate = parseDerCertificate(block.der, 'COULD_NOT_PARSE_DER_BLOCK')
  if (certificate.commonName !== ca.verificationToken) throw new Problem('INVALID_COMMON_NAME')
  try {
    checkCertificateChain([certificate], [parseCertificate(ca.certPem)], nowMs)
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error
    throw new Problem('CERTIFICATE_FAILED_VALIDATION', { detail: error.message })
  }
}
