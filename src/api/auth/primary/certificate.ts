import { authPolicyOf } from '../../../fsm/apply/authentication.ts'
import { isDisabled } from '../../../lib/is-disabled.ts'
import { Problem } from '../../../lib/problems.ts'
import type { RequestContext } from '../../call.ts'
import type { Reply } from '../../answers/envelope.ts'
import type { ApiParts } from '../../parts.ts'
import type { ApiServices } from '../../records/services.ts'
import { type CertificateHolder, holderOf } from '../client-certificate.ts'
import { type LogInBody, SessionOpener } from '../open-session.ts'
import { judgedNowMs } from '../judged-now.ts'

/** Log-in by the client certificate of the connection. */
export class CertificateLogIn {
  readonly #parts: ApiParts
  readonly #services: ApiServices
  readonly #opener: SessionOpener

  constructor(parts: ApiParts, services: ApiServices) {
    this.#parts = parts
    this.#services = services
    this.#opener = new SessionOpener(parts, services)
  }

  /**
   * Every refusal is the same to the client: which certificates, CAs and identities there are is
   * not told.
   */
  async logIn(call: RequestContext, given: LogInBody): Promise<Reply> {
    const chain = call.credentials.peerChain()
    if (chain === null) throw new Problem('INVALID_AUTH')
    this.#services.tokens.requireKey()
    // A certificate that was enrolled elsewhere a moment ago is known here after this; so is a CA
    // that was taken back.
    await this.#parts.reads.reachLatest()
    const holder = holderOf(this.#parts, chain)
    if ('reason' in holder || !this.#mayLogIn(holder)) throw new Problem('INVALID_AUTH')
    const { identity, authenticator, externalId, ca, hasImproperChain } = holder
    const certificate = {
      fingerprint: chain[0].sha1,
      caId: ca?.id ?? '',
      improperChain: hasImproperChain,
      externalId,
    }
    return this.#opener.open(call, { identityId: identity.id, authenticator, certificate }, given)
  }

  #mayLogIn({ identity, leafTime }: CertificateHolder): boolean {
    const { state } = this.#parts
    if (isDisabled(identity, judgedNowMs(this.#parts))) return false
    const rules = authPolicyOf(state, identity)?.primary.cert
    if (rules?.allowed !== true) return false
    // One whose time has not begun was made for later, whatever is allowed of one whose time is
    // over.
    return leafTime === 'valid' || (leafTime === 'expired' && rules.allowExpiredCerts)
  }
}
