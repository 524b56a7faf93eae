import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, SessionCreateSchema } from '../../../proto/gen/command_pb.ts'
import type { Authenticator } from '../../entities/authenticator.ts'
import type { Identity } from '../../entities/identity.ts'
import { envInfo, sdkInfo } from '../../entities/shapes.ts'
import { authPolicyOf } from '../../fsm/authentication.ts'
import { isDisabled } from '../../fsm/commands/admins.ts'
import { canonicalJson } from '../../lib/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import { systemActor } from '../../ports/actor.ts'
import { callerIn } from '../auth/session-keeper.ts'
import type { Call } from '../call.ts'
import { configTypeIds } from '../config-types.ts'
import { reachLatest } from '../consistency.ts'
import { detailAnswer } from '../envelope.ts'
import type { Answer } from '../envelope.ts'
import type { Operation } from '../operation.ts'
import type { ApiParts } from '../parts.ts'
import { queryParametersNamed } from '../query-parameters.ts'
import { credentials, currentSession } from '../schemas.ts'
import type { ApiServices } from '../services.ts'
import { judged } from '../writes.ts'
import { currentSessionView } from '../session-view.ts'

interface Credentials {
  readonly configTypes?: readonly string[] | null
  readonly envInfo?: Readonly<Record<string, unknown>> | null
  readonly password?: string
  readonly sdkInfo?: Readonly<Record<string, unknown>> | null
  readonly username?: string
}

/** An authenticator whose password was right, with the identity it belongs to. */
interface Proof {
  readonly authenticator: EntityRecord
  readonly identityId: string
}

const utf8 = new TextEncoder()
/** Whoever has no session yet can not take the room of large bodies. */
const LOG_IN_BODY_BYTES_MAX = 64 * 1024

export function authenticateOperations(parts: ApiParts, services: ApiServices): Operation[] {
  const logIn = new LogIn(parts, services)
  return [
    {
      operationId: 'authenticate',
      summary:
        'Logs in by user name and password; certificates and external JWTs are not taken yet',
      tag: 'authentication',
      apis: ['client', 'management'],
      method: 'POST',
      path: '/authenticate',
      permission: 'public',
      query: queryParametersNamed(['method']).map((method) => ({ ...method, isRequired: true })),
      body: { schema: credentials, isRequired: false },
      bodyBytesMax: LOG_IN_BODY_BYTES_MAX,
      success: 200,
      response: { kind: 'detail', schema: currentSession },
      refusals: [400, 401, 413, 415, 429, 503],
      handle: (call) => {
        if (call.first('method') !== 'password') throw new Problem('INVALID_AUTH_METHOD')
        return logIn.byPassword(call, call.body as Credentials)
      },
    },
  ]
}

/** Log-in is a write: the session it makes must be known on every controller. */
class LogIn {
  readonly #parts: ApiParts
  readonly #services: ApiServices

  constructor(parts: ApiParts, services: ApiServices) {
    this.#parts = parts
    this.#services = services
  }

  async byPassword(call: Call, given: Credentials): Promise<Answer> {
    const { username, password } = given
    if (username === undefined) throw fieldProblem('username', 'username is required')
    if (password === undefined) throw fieldProblem('password', 'password is required')
    this.#services.tokens.requireKey()
    return await judged(call, this.#parts.limits, () =>
      this.#logIn(call, username, password, given),
    )
  }

  /** @throws {Problem} REVISION_MOVED where the password was changed after it was judged: no session is opened by an old one. */
  async #logIn(
    call: Call,
    username: string,
    password: string,
    given: Credentials,
  ): Promise<Answer> {
    const proof = await this.#services.throttle.attempt(username, call.address, async () => {
      const { cluster, state, limits } = this.#parts
      // Without a leader there will be no session, so no hash is computed; with one, a password set elsewhere a moment
      // ago is known here too.
      await reachLatest(cluster, state, limits.indexWaitMs)
      return this.#prove(call, username, password)
    })
    if (proof === null) throw new Problem('INVALID_AUTH')
    return this.#openSession(call, proof, given)
  }

  /** Null for every reason to refuse, after the same work: an answer tells nothing about which names exist. */
  async #prove(call: Call, username: string, password: string): Promise<Proof | null> {
    const { state } = this.#parts
    const authenticator = state.find('authenticator', 'username', username) as
      Authenticator | undefined
    const identityId = authenticator === undefined ? null : this.#holderOf(authenticator)
    if (authenticator === undefined || identityId === null) {
      await this.#services.passwords.verify(call, null, password)
      return null
    }
    const isRight = await this.#services.passwords.verify(
      call,
      authenticator.passwordHash,
      password,
      () => this.#services.lockout.reserve(authenticator, call.address),
    )
    return isRight ? { authenticator, identityId } : null
  }

  /** The identity that may log in by this password, or null. */
  #holderOf({ method, identityId }: Authenticator): string | null {
    const { state, clock } = this.#parts
    if (method !== 'updb') return null
    const identity = state.get<Identity>('identity', identityId)
    if (identity === undefined || isDisabled(identity, clock.nowMs())) return null
    return authPolicyOf(state, identity)?.primary.updb.allowed === true ? identity.id : null
  }

  async #openSession(call: Call, proof: Proof, given: Credentials): Promise<Answer> {
    const { state } = this.#parts
    const { authenticator } = proof
    const message = create(SessionCreateSchema, {
      id: newShortId(),
      identityId: proof.identityId,
      authenticatorId: authenticator.id,
      ipAddress: call.address,
      configTypes: this.#configTypes(given.configTypes ?? []),
      envInfoJson: infoJson(given.envInfo, envInfo),
      sdkInfoJson: infoJson(given.sdkInfo, sdkInfo),
    })
    const payload = toBinary(SessionCreateSchema, message)
    // A record of the request id would keep a plain hash over the password in the log. A second session does no harm.
    call.isRepeatable = false
    const judgedOn = [
      { entity: 'authenticator', id: authenticator.id, revision: authenticator.revision },
    ]
    // The session that it could act by is what it makes.
    const actor = systemActor({ address: call.address, identityId: proof.identityId })
    const { writer } = this.#services
    const id = await writer.write(call, CommandKind.SESSION_CREATE, payload, judgedOn, actor)
    const session = state.get('apiSession', id)
    const identity = state.get<Identity>('identity', proof.identityId)
    if (session === undefined || identity === undefined) throw new Problem('INVALID_AUTH')
    this.#services.sessions.use(id)
    const caller = callerIn(state, session, identity)
    call.caller = caller
    const token = this.#services.tokens.tokenOf(id)
    return {
      ...detailAnswer(currentSessionView(this.#parts, this.#services, caller)),
      headers: { 'zt-session': token, 'net-session': token },
    }
  }

  /** By id or name; what does not exist is dropped, and `all` stands alone. */
  #configTypes(asked: readonly string[]): string[] {
    const { state, limits } = this.#parts
    if (asked.includes('all')) return ['all']
    return configTypeIds(state, asked.slice(0, limits.configTypesMax))
  }
}

/** Known members only, whatever their case: SDKs differ in it. Empty bytes when nothing was said. */
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

const INFO_CHARACTERS_MAX = 255
