import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import {
  type CertificateProofSchema,
  CommandKind,
  SessionCreateSchema,
} from '../../../proto/gen/command_pb.ts'
import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import { envInfo, sdkInfo } from '../../entities/shapes.ts'
import { canonicalJson } from '../../lib/text/canonical-json.ts'
import { Problem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import { systemActor } from '../../ports/actor.ts'
import type { ProposalInput } from '../../ports/proposer.ts'
import { originOf, type RequestContext } from '../call.ts'
import { configTypeIds } from '../records/config-types.ts'
import { detailAnswer, type Reply } from '../answers/envelope.ts'
import type { ApiParts } from '../parts.ts'
import type { ApiServices } from '../records/services.ts'
import { currentSessionView } from '../records/session-view.ts'
import { factorHeaders } from './external-jwt/token-factor.ts'
import type { VerifiedToken } from './external-jwt/token-judge.ts'
import type { SessionPrincipal } from './principal.ts'
import { holderIn } from './session-tracker.ts'

/** What a client may say of itself as it logs in, whatever it logs in by. */
export interface LogInBody {
  readonly configTypes?: readonly string[] | null
  readonly envInfo?: Readonly<Record<string, unknown>> | null
  readonly sdkInfo?: Readonly<Record<string, unknown>> | null
}

/** A credential that was right, and whose it is. */
export interface Proof {
  readonly identityId: string
  /** Undefined where a CA's claim says who it is. */
  readonly authenticator: Authenticator | undefined
  readonly certificate?: MessageInitShape<typeof CertificateProofSchema>
  readonly token?: VerifiedToken
}

type Revisions = NonNullable<ProposalInput['judgedOn']>

const utf8 = new TextEncoder()
const INFO_CHARACTERS_MAX = 255

/** Log-in is a write: the session that it makes must be known on every controller. */
export class SessionOpener {
  readonly #parts: ApiParts
  readonly #services: ApiServices

  constructor(parts: ApiParts, services: ApiServices) {
    this.#parts = parts
    this.#services = services
  }

  /**
   * @throws {Problem} INVALID_AUTH where apply found that the holder may not log in any more;
   * REVISION_MOVED where the credential was changed after it was judged: no session is opened by an
   * old one.
   */
  async open(call: RequestContext, proof: Proof, given: LogInBody): Promise<Reply> {
    const { state } = this.#parts
    const { authenticator, certificate, identityId, token: shown } = proof
    const message = create(SessionCreateSchema, {
      id: newShortId(),
      identityId,
      authenticatorId: authenticator?.id ?? '',
      ipAddress: call.credentials.address,
      configTypes: this.#configTypes(given.configTypes ?? []),
      api: call.api,
      envInfoJson: infoJson(given.envInfo, envInfo),
      sdkInfoJson: infoJson(given.sdkInfo, sdkInfo),
      ...(certificate === undefined ? {} : { certificate }),
      ...(shown === undefined ? {} : { token: { signerId: shown.signerId, claim: shown.claim } }),
    })
    const payload = toBinary(SessionCreateSchema, message)
    // A record of the request id would keep a plain hash over a password in the log. A second
    // session does no harm.
    call.metadata.isRepeatable = false
    const judgedOn = judgedOnOf(proof)
    // The session that it could act by is what it makes.
    const actor = systemActor({ address: call.credentials.address, identityId })
    const { writer } = this.#services
    const id = await writer.write(originOf(call, actor), {
      kind: CommandKind.SESSION_CREATE,
      payload,
      judgedOn,
    })
    const session = state.get('apiSession', id)
    const identity = state.get<Identity>('identity', identityId)
    if (session === undefined || identity === undefined) throw new Problem('INVALID_AUTH')
    this.#services.sessions.use(id)
    const { tokenFactor } = this.#services
    const opened = holderIn(state, session, identity)
    const { credentials } = call
    const factor = await tokenFactor.tokenFor(credentials, opened)
    const caller: SessionPrincipal = {
      ...tokenFactor.completed(opened, factor),
      kind: 'session',
      address: credentials.address,
      permission: 'partial',
    }
    call.caller = caller
    const token = this.#services.tokens.tokenOf(id)
    return {
      ...detailAnswer(currentSessionView(this.#parts, this.#services, caller)),
      headers: {
        'zt-session': token,
        'net-session': token,
        ...(authenticator?.isExtendRequested === true
          ? { 'ziti-authenticator-extend-requested': 'true' }
          : {}),
        ...factorHeaders(this.#parts, credentials, caller),
      },
    }
  }

  /** By id or name; what does not exist is dropped, and `all` stands alone. */
  #configTypes(asked: readonly string[]): string[] {
    const { state, limits } = this.#parts
    if (asked.includes('all')) return ['all']
    return configTypeIds(state, asked.slice(0, limits.configTypesMax))
  }
}

/**
 * What a certificate is judged on is judged again at apply, so that log-ins by one at once stand in
 * nobody's way.
 */
function judgedOnOf({ authenticator, certificate, token }: Proof): Revisions {
  if (token !== undefined) {
    const { signerId: id, signerRevision: revision } = token
    return [{ entity: 'externalJwtSigner', id, revision }]
  }
  if (authenticator === undefined || certificate !== undefined) return []
  return [{ entity: 'authenticator', id: authenticator.id, revision: authenticator.revision }]
}

/**
 * Known members only, whatever their case: SDKs differ in it. Empty bytes when nothing was said.
 */
function infoJson(
  info: Readonly<Record<string, unknown>> | null | undefined,
  shape: Readonly<Record<string, unknown>>,
): Uint8Array {
  if (info === null || info === undefined) return new Uint8Array()
  const names = Object.keys(shape['properties'] as Readonly<Record<string, unknown>>)
  const byLowerCase = new Map(names.map((name) => [name.toLowerCase(), name]))
  const known: Record<string, string> = {}
  for (const [name, value] of Object.entries(info)) {
    const wanted = byLowerCase.get(name.toLowerCase())
    if (wanted !== undefined && typeof value === 'string')
      known[wanted] = value.slice(0, INFO_CHARACTERS_MAX)
  }
  return utf8.encode(canonicalJson(known))
}
