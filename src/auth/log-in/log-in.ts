import { create, toBinary } from '@bufbuild/protobuf'
import {
  CommandKind,
  SessionCreateSchema,
  SessionDeleteSchema,
} from '../../../proto/gen/command_pb.ts'
import type { ApiSession } from '../../entities/kinds/api-session.ts'
import { OIDC_FEATURE_LEVEL } from '../../ports/feature-level.ts'
import { envInfoSchema, sdkInfoSchema } from '../../entities/response-schemas.ts'
import { isUsableWithCertificate } from '../../fsm/apply/session-usability.ts'
import { sessionValidity } from '../../fsm/apply/session-validity.ts'
import { configTypeIds } from '../../fsm/config-type-ids.ts'
import { canonicalJson } from '../../lib/text/canonical-json.ts'
import { Problem } from '../../lib/problems.ts'
import type { RefusalCause } from '../../lib/refusal-reason.ts'
import { newShortId } from '../../lib/random.ts'
import { retryWhenRecordsChange } from '../../lib/retry-when-records-change.ts'
import { createSystemActor } from '../../ports/actor.ts'
import type { ProposalInput } from '../../ports/proposer.ts'
import type { CommandWriter, WriteRequest } from '../../ports/writer.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import type { ExternalJwtChallenge } from '../tokens/external-jwt-challenge.ts'
import type { ExternalJwtFactor } from '../principal/external-jwt-factor.ts'
import type { PasswordHashCaller } from '../factors/password-verifier.ts'
import type { ApiName } from '../principal/permissions.ts'
import {
  type CertificateLogInDeps,
  authenticateByCertificate,
  checkCertificateLocally,
  isSameCredentialProof,
} from './certificate.ts'
import {
  authenticateByToken,
  refusedTokenChallenge,
  type ExternalJwtLogInDeps,
} from './external-jwt.ts'
import {
  type PasswordCredential,
  type PasswordLogInDeps,
  authenticateByPassword,
} from './password.ts'
import { writeOriginForActor, type SessionPrincipal } from '../principal/principal.ts'
import type { SessionTracker } from '../sessions/session-tracker.ts'
import type { SessionTokenSigner } from '../sessions/session-token-signer.ts'
import type { CredentialProof } from './proof.ts'

/**
 * A refused log-in. Several reasons share one code and challenge, so that the client cannot
 * distinguish them.
 */
export interface LogInRefusal {
  readonly code: 'INVALID_AUTH' | 'UNAUTHORIZED'
  readonly challenge: ExternalJwtChallenge | null
  /**
   * Cause of the refusal, which only operators see; undefined if the credential was not checked.
   */
  readonly cause?: RefusalCause
}

/** The problem of a refused log-in, with its cause for the operator. */
export function logInProblem({ code, cause }: LogInRefusal): Problem {
  return new Problem(code, cause === undefined ? {} : { refusal: cause })
}

/**
 * The credential of a log-in. For `cert` and `ext-jwt`, the credential itself is in the caller's
 * connection or headers.
 */
export type LogInCredential =
  | { readonly by: 'cert' }
  | { readonly by: 'ext-jwt' }
  | ({ readonly by: 'password' } & PasswordCredential)

/**
 * A log-in request: the caller, as the queue of password hashes identifies the caller, and the
 * request behind the log entry that opens the session.
 */
export interface LogInRequest {
  readonly write: WriteRequest
  readonly turn: PasswordHashCaller
}

/** Client information that a client sends when it logs in, by any method. */
export interface LogInClientInfo {
  /**
   * API that received the request; null for OIDC, where the first use of the tokens decides which
   * API accepts them.
   */
  readonly api: ApiName | null
  readonly configTypes?: readonly string[] | null
  readonly envInfo?: Readonly<Record<string, unknown>> | null
  readonly sdkInfo?: Readonly<Record<string, unknown>> | null
  /** Set for a session that gets OIDC tokens. */
  readonly oidc?: OidcSessionOptions
}

/**
 * Options with which a log-in flow of OIDC opens a session, with an authorization code or for a
 * device.
 */
export interface OidcSessionOptions {
  readonly sessionId: string
  readonly clientId: string
  /**
   * Hex SHA-256 of the redeemed code; '': no code was redeemed yet, because the session still lacks
   * a factor or the device has not polled since its approval.
   */
  readonly codeHash: string
  /** True: the session must already exist, and its code must not have been redeemed yet. */
  readonly isBegun: boolean
  /** PEM of the client's certificate request; '': none. */
  readonly certificateRequest: string
  /**
   * Revision of the cluster key that encrypted the stored proof of the log-in; absent if this
   * request contains the credential itself. The state machine refuses the session if the key has
   * changed.
   */
  readonly keyRevision?: number
}

interface OpenedSession {
  readonly principal: SessionPrincipal
  readonly token: string
  /** True: an administrator has requested that the certificate of this log-in is extended. */
  readonly isExtendRequested: boolean
}

interface LogInDeps extends PasswordLogInDeps, CertificateLogInDeps, ExternalJwtLogInDeps {
  readonly limits: { readonly judgementsMax: number; readonly configTypesMax: number }
  readonly writer: CommandWriter
  readonly sessions: SessionTracker
  readonly tokens: SessionTokenSigner
  readonly tokenFactor: ExternalJwtFactor
}

type Revisions = NonNullable<ProposalInput['judgedOn']>

const utf8 = new TextEncoder()
const INFO_CHARACTERS_MAX = 255

/** Primary authentication: verifies a credential and opens a session. */
export class LogInService {
  readonly #deps: LogInDeps

  constructor(deps: LogInDeps) {
    this.#deps = deps
  }

  /**
   * @throws {Problem} for errors of this controller or cluster, for example CLUSTER_NO_LEADER or
   * SERVER_TOO_MANY_REQUESTS.
   */
  async prove(
    credential: LogInCredential,
    shown: CallerCredentials,
    turn: PasswordHashCaller,
  ): Promise<CredentialProof | LogInRefusal> {
    const deps = this.#deps
    switch (credential.by) {
      case 'password':
        deps.tokens.requireKey()
        return answered(await authenticateByPassword(deps, shown.address, credential, turn))
      case 'cert': {
        const chain = shown.peerChain()
        if (chain === null) return answered({ reason: 'CERTIFICATE_MISSING' })
        deps.tokens.requireKey()
        return answered(await authenticateByCertificate(deps, chain, shown.address))
      }
      case 'ext-jwt': {
        deps.tokens.requireKey()
        const found = await authenticateByToken(deps, shown)
        return 'error' in found ? this.#refused(found.error, found.cause) : found
      }
    }
  }

  /**
   * Verifies a credential and opens a session. Verifies the credential again if it changed before
   * the session was opened.
   */
  logIn(
    credential: LogInCredential,
    shown: CallerCredentials,
    client: LogInClientInfo,
    request: LogInRequest,
  ): Promise<OpenedSession | LogInRefusal> {
    return retryWhenRecordsChange(request.write, this.#deps.limits, async () => {
      const early = credential.by === 'cert' ? await this.#logInHere(shown, client, request) : null
      if (early !== null) return early
      const proof = await this.prove(credential, shown, request.turn)
      if ('code' in proof) return proof
      try {
        return await this.open(proof, shown, client, request.write)
      } catch (error) {
        const isRefused = error instanceof Problem && error.code === 'INVALID_AUTH'
        // If a credential changed before the log entry was applied, the refusal is the same as for
        // a credential that was always invalid.
        // @guard forged-tokens--told
        if (isRefused && credential.by === 'ext-jwt') return this.#refused('invalid', changed)
        throw error
      }
    })
  }

  /**
   * Logs in with a certificate that the state of this controller accepts, without a read-index
   * round (ADR 60). In the log, every change that was acknowledged before the log-in is before the
   * entry that opens the session. After this controller has applied that entry, it checks the
   * certificate again. If the second check fails, the session ends before anyone receives its
   * token.
   * @returns null if the log-in must be checked against the latest state instead.
   */
  async #logInHere(
    shown: CallerCredentials,
    client: LogInClientInfo,
    { write }: LogInRequest,
  ): Promise<OpenedSession | null> {
    const deps = this.#deps
    const chain = shown.peerChain()
    if (chain === null) return null
    deps.tokens.requireKey()
    const proof = checkCertificateLocally(deps, chain)
    if ('reason' in proof) return null
    let opened: OpenedSession
    try {
      opened = await this.open(proof, shown, client, write)
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== 'INVALID_AUTH') throw error
      write.onProposed(null)
      return null
    }
    const now = checkCertificateLocally(deps, chain)
    // @guard certificate-of-a-ca--rechecked
    if (!('reason' in now) && isSameCredentialProof(proof, now)) {
      return { ...opened, isExtendRequested: now.authenticator?.isExtendRequested === true }
    }
    await this.#discard(opened, shown, write)
    return null
  }

  /** Ends a session whose token no client has received. */
  async #discard(
    { principal }: OpenedSession,
    { address }: CallerCredentials,
    request: WriteRequest,
  ): Promise<void> {
    const { writer, sessions } = this.#deps
    const { identity, session } = principal
    const { id } = session
    sessions.forget(id)
    const actor = createSystemActor({ address, identityId: identity.id })
    const origin = writeOriginForActor(request, actor, { case: 'notKept' })
    const payload = toBinary(SessionDeleteSchema, create(SessionDeleteSchema, { id }))
    try {
      await writer.write(origin, { kind: CommandKind.SESSION_DELETE, payload })
    } catch (error) {
      // Another entry has ended the session, for example the deletion of its identity.
      if (!(error instanceof Problem) || error.code !== 'NOT_FOUND') throw error
    }
    request.onProposed(null)
  }

  /**
   * Whether the caller may use the session with the certificate of the connection; true if the
   * session is bound to no key.
   */
  isProven(session: ApiSession, shown: CallerCredentials): boolean {
    return isUsableWithCertificate(this.#deps.state, session, shown.peerChain()?.[0].sha1 ?? null)
  }

  /**
   * Writes the session to the log, so that every controller knows it.
   * @throws {Problem} INVALID_AUTH if the state machine finds that the identity may no longer log
   * in; REVISION_MOVED if the credential changed after it was verified, because a replaced
   * credential must open no session.
   */
  async open(
    proof: CredentialProof,
    shown: CallerCredentials,
    client: LogInClientInfo,
    request: WriteRequest,
  ): Promise<OpenedSession> {
    const { state, writer, sessions, tokens, tokenFactor } = this.#deps
    const { authenticator, identityId } = proof
    const { address } = shown
    // The session is not opened yet, so the system acts on behalf of the identity.
    const actor = createSystemActor({ address, identityId })
    // Stores no request id: together with the id, the log would store an unsalted hash of the
    // password. If the request is repeated, a second session does no harm.
    const id = await writer.write(writeOriginForActor(request, actor, { case: 'notKept' }), {
      kind: CommandKind.SESSION_CREATE,
      payload: this.#payload(proof, address, client),
      ...(client.oidc === undefined ? {} : { level: OIDC_FEATURE_LEVEL }),
      // @guard oidc/sealed-by-a-former-member--applied
      judgedOn: judgedOnOf(proof, client.oidc?.keyRevision),
    })
    const opened = sessionValidity(state.recordsNow, id)
    if (opened === null) throw new Problem('INVALID_AUTH')
    sessions.use(id)
    const isFull = opened.pendingFactors.length === 0
    const factor = isFull ? null : await tokenFactor.tokenFor(shown, opened)
    const principal: SessionPrincipal = {
      ...(factor === null ? opened : tokenFactor.completed(opened, factor)),
      kind: 'session',
      address,
      permission: 'partial',
    }
    const isExtendRequested = authenticator?.isExtendRequested === true
    return { principal, token: tokens.tokenOf(id), isExtendRequested }
  }

  #payload(
    { identityId, authenticator, certificate, token }: CredentialProof,
    address: string,
    { api, configTypes, envInfo: env, sdkInfo: sdk, oidc }: LogInClientInfo,
  ): Uint8Array {
    const message = create(SessionCreateSchema, {
      id: oidc?.sessionId ?? newShortId(),
      identityId,
      authenticatorId: authenticator?.id ?? '',
      ipAddress: address,
      configTypes: this.#configTypes(configTypes ?? []),
      api: api ?? '',
      envInfoJson: infoJson(env, envInfoSchema),
      sdkInfoJson: infoJson(sdk, sdkInfoSchema),
      ...(certificate === undefined ? {} : { certificate }),
      ...(token === undefined ? {} : { token: { signerId: token.signerId, claim: token.claim } }),
      ...(oidc === undefined ? {} : { oidc: oidcProofOf(oidc) }),
    })
    return toBinary(SessionCreateSchema, message)
  }

  /**
   * Resolves config types by id or name, up to `limits.configTypesMax`; drops unknown ones. With
   * `all` among them, the result is only `all`.
   */
  #configTypes(asked: readonly string[]): string[] {
    const { state, limits } = this.#deps
    if (asked.length === 0) return []
    if (asked.includes('all')) return ['all']
    return configTypeIds(state, asked.slice(0, limits.configTypesMax))
  }

  #refused(error: ExternalJwtChallenge['error'], cause: RefusalCause): LogInRefusal {
    return { code: 'UNAUTHORIZED', challenge: refusedTokenChallenge(this.#deps, error), cause }
  }
}

function oidcProofOf({ clientId, codeHash, isBegun, certificateRequest }: OidcSessionOptions) {
  return { clientId, codeHash, isBegun, certificateRequest }
}

const changed: RefusalCause = { reason: 'CREDENTIAL_CHANGED' }

function answered(found: CredentialProof | RefusalCause): CredentialProof | LogInRefusal {
  return 'reason' in found ? { code: 'INVALID_AUTH', challenge: null, cause: found } : found
}

/**
 * The revisions of records that the verification of a credential depended on; the state machine
 * refuses if one has changed. A certificate's records are not among them: the state machine checks
 * these records again, so that concurrent log-ins with one certificate do not conflict.
 */
function judgedOnOf(
  { authenticator, certificate, token }: CredentialProof,
  keyRevision: number | undefined,
): Revisions {
  const judgedOn: Revisions[number][] = []
  if (token !== undefined) {
    const { signerId: id, signerRevision: revision } = token
    judgedOn.push({ entity: 'externalJwtSigner', id, revision })
  } else if (authenticator !== undefined && certificate === undefined) {
    const { id, revision } = authenticator
    // @guard old-password--log-ins
    judgedOn.push({ entity: 'authenticator', id, revision })
  }
  if (keyRevision !== undefined) {
    judgedOn.push({ entity: 'sharedSecret', id: 'clusterKey', revision: keyRevision })
  }
  return judgedOn
}

/**
 * The JSON fields that the client reported about itself, as bytes; empty if it reported none. Drops
 * unknown fields and ignores the case of names, because SDKs differ in case.
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
