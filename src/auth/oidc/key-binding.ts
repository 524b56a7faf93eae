import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, SessionCertificateDeleteSchema } from '../../../proto/gen/command_pb.ts'
import type { SessionCertificate } from '../../entities/kinds/session-certificate.ts'
import { sessionCertificatesMax } from '../../fsm/enrollment/certificate.ts'
import { Problem } from '../../lib/problems.ts'
import { systemActor } from '../../ports/actor.ts'
import type { CertificateIssuer } from '../../ports/certificate-issuer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { CommandWriter, WriteRequest } from '../../ports/writer.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import { originBy } from '../principal/principal.ts'
import {
  type MadeSessionCertificate,
  makeSessionCertificate,
} from '../sessions/made-certificate.ts'
import { OAuthError } from './oauth-error.ts'

/** A longer request is refused: it travels inside the code, which is part of a URL. */
const REQUEST_CHARACTERS_MAX = 4096
const UNREADABLE = 'unreadable'

/** The request as a log-in carries it to where its code is redeemed, which judges it. */
export function carriedRequest(pem: string | undefined): string {
  if (pem === undefined) return ''
  return pem.length > REQUEST_CHARACTERS_MAX ? UNREADABLE : pem
}

interface Needs {
  readonly state: Pick<StateView, 'findAll'>
  readonly issuer: CertificateIssuer
  readonly writer: CommandWriter
}

/**
 * Certificates that clients ask for amid a log-in or a refresh. The tokens of such a session count
 * only together with a certificate of it: stolen tokens alone are useless.
 */
export class KeyBinding {
  readonly #needs: Needs

  constructor(needs: Needs) {
    this.#needs = needs
  }

  /**
   * A certificate for the key of a request, which need not be there yet for its session.
   * @returns null: nothing was asked for. @throws {OAuthError} invalid_request.
   */
  async certify(
    ids: { readonly identityId: string; readonly apiSessionId: string },
    requestPem: string,
  ): Promise<MadeSessionCertificate | null> {
    if (requestPem === '') return null
    try {
      return await makeSessionCertificate(this.#needs.issuer, {
        ...ids,
        requestPem,
        madeAt: 'log-in',
      })
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'COULD_NOT_PROCESS_CSR')) throw error
      throw new OAuthError('invalid_request', 'the certificate request is none that can be signed')
    }
  }

  /**
   * Keeps it with its session, so that every controller takes it; the oldest makes room.
   * @throws {OAuthError} invalid_grant: the session has ended.
   */
  async keep(
    { apiSessionId, payload }: MadeSessionCertificate,
    identityId: string,
    { address }: Pick<CallerCredentials, 'address'>,
    request: WriteRequest,
  ): Promise<void> {
    const { state, writer } = this.#needs
    const origin = originBy(request, systemActor({ address, identityId }), { case: 'notKept' })
    const own = state.findAll<SessionCertificate>(
      'sessionCertificate',
      'apiSessionId',
      apiSessionId,
    )
    const oldest = own.toSorted((a, b) => a.revision - b.revision)[0]
    try {
      if (own.length >= sessionCertificatesMax && oldest !== undefined) {
        const message = create(SessionCertificateDeleteSchema, { id: oldest.id, apiSessionId })
        await writer.write(origin, {
          kind: CommandKind.SESSION_CERTIFICATE_DELETE,
          payload: toBinary(SessionCertificateDeleteSchema, message),
        })
      }
      await writer.write(origin, { kind: CommandKind.SESSION_CERTIFICATE_CREATE, payload })
    } catch (error) {
      const hasEnded = error instanceof Problem && error.code === 'UNAUTHORIZED'
      throw hasEnded ? new OAuthError('invalid_grant', 'the session has ended') : error
    }
  }
}
