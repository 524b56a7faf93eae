import { CommandKind } from '../../../proto/gen/command_pb.ts'
import { Problem } from '../../lib/problems.ts'
import { createSystemActor } from '../../ports/actor.ts'
import type { CertificateIssuer } from '../../ports/certificate-issuer.ts'
import type { CommandWriter, WriteRequest } from '../../ports/writer.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import { writeOriginForActor } from '../principal/principal.ts'
import {
  type IssuedSessionCertificate,
  issueSessionCertificate,
} from '../sessions/session-certificate.ts'
import { OAuthError } from './oauth-error.ts'

/**
 * Maximum characters of a certificate request. The authorization code, which is part of a URL,
 * contains the request.
 */
const REQUEST_CHARACTERS_MAX = 4096
const UNREADABLE = 'unreadable'

/**
 * The certificate request as the encrypted authorization code contains it. The request is validated
 * when the code is redeemed; a request that is too long then fails.
 */
export function encodeFlowCertificateRequest(pem: string | undefined): string {
  if (pem === undefined) return ''
  return pem.length > REQUEST_CHARACTERS_MAX ? UNREADABLE : pem
}

interface KeyBindingDeps {
  readonly issuer: CertificateIssuer
  readonly writer: CommandWriter
}

/**
 * Certificates that clients request during a log-in or refresh. The tokens of a session with such a
 * certificate are valid only together with it, so stolen tokens alone are useless.
 */
export class TokenKeyBinding {
  readonly #deps: KeyBindingDeps

  constructor(deps: KeyBindingDeps) {
    this.#deps = deps
  }

  /**
   * Issues a certificate for the key of a request; the session of the certificate need not exist
   * yet.
   * @returns null if the client requested no certificate.
   * @throws {OAuthError} invalid_request.
   */
  async certify(
    ids: { readonly identityId: string; readonly apiSessionId: string },
    requestPem: string,
  ): Promise<IssuedSessionCertificate | null> {
    if (requestPem === '') return null
    try {
      const order = { ...ids, requestPem, madeAt: 'log-in' } as const
      return await issueSessionCertificate(this.#deps.issuer, order, true)
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'COULD_NOT_PROCESS_CSR')) throw error
      throw new OAuthError('invalid_request', 'the certificate request is none that can be signed')
    }
  }

  /**
   * Stores the certificate with its session, so that every controller accepts it, and replaces the
   * previous certificate. After that, clients cannot renew tokens with the old key.
   * @throws {OAuthError} invalid_grant if the session has ended.
   */
  async keep(
    { payload }: IssuedSessionCertificate,
    identityId: string,
    { address }: Pick<CallerCredentials, 'address'>,
    request: WriteRequest,
  ): Promise<void> {
    const { writer } = this.#deps
    const origin = writeOriginForActor(request, createSystemActor({ address, identityId }), {
      case: 'notKept',
    })
    try {
      await writer.write(origin, { kind: CommandKind.SESSION_CERTIFICATE_CREATE, payload })
    } catch (error) {
      const hasEnded = error instanceof Problem && error.code === 'UNAUTHORIZED'
      throw hasEnded ? new OAuthError('invalid_grant', 'the session has ended') : error
    }
  }
}
