import { encodeCertsOnlyPkcs7 } from '../../pki/certs-only.ts'
import { networkAuthorities } from '../../auth/certificates/trusted-authorities.ts'
import { responseWithoutEnvelope, type Reply } from '../http/responses/envelope.ts'
import type { Operation } from '../http/operation.ts'
import { estCertificatesSchema } from '../identities/identities-schema.ts'
import type { NetworkAuthorities } from '../../auth/certificates/network-authorities.ts'

interface WellKnownOperationsDeps {
  readonly authorities: NetworkAuthorities
}

const CONTENT_TYPE = 'application/pkcs7-mime'
const LINE_CHARACTERS = 64

/**
 * Operation that returns the CA certificates of the network (RFC 7030, 4.1), so that a client that
 * trusts one controller can trust all of them.
 */
export function wellKnownOperations(deps: WellKnownOperationsDeps): Operation[] {
  let made: { readonly from: string; readonly answer: Reply } | null = null
  return [
    {
      operationId: 'listWellKnownCas',
      summary: 'Get the CA certificates of the network (EST: PKCS #7, base64)',
      tag: 'wellKnown',
      apis: ['client', 'management'],
      permission: 'public',
      method: 'GET',
      path: '/.well-known/est/cacerts',
      success: 200,
      response: {
        kind: 'bare',
        schema: estCertificatesSchema,
        types: [CONTENT_TYPE],
        ignoresAccept: true,
      },
      handle: () => {
        const { authorities } = deps
        const from = `${authorities.anchorsPem()}\n${authorities.intermediatesPem()}`
        if (made?.from !== from) made = { from, answer: answerOf(deps) }
        return made.answer
      },
    },
  ]
}

function answerOf(deps: WellKnownOperationsDeps): Reply {
  const base64 = encodeCertsOnlyPkcs7(networkAuthorities(deps)).toString('base64')
  const lines = base64.match(new RegExp(`.{1,${LINE_CHARACTERS}}`, 'g')) ?? []
  return {
    ...responseWithoutEnvelope(`${lines.join('\n')}\n`, CONTENT_TYPE),
    headers: { 'content-transfer-encoding': 'base64' },
  }
}
