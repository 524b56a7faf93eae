import { fromBinary } from '@bufbuild/protobuf'
import {
  type CertificateProof,
  type OidcProof,
  type SessionCreate,
  SessionCreateSchema,
  SessionDeleteSchema,
  type SessionExpire_Mark,
  SessionExpireSchema,
  SessionTouchSchema,
  type TokenProof,
} from '../../../proto/gen/command_pb.ts'
import { apiSession } from '../../entities/kinds/api-session.ts'
import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import { isSameJson } from '../../lib/text/canonical-json.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { isNotBoundToApi } from '../apply/session-usability.ts'
import { identityAuthPolicy, isCaAcceptedForLogIn } from '../apply/authentication.ts'
import {
  findEnabledSigner,
  claimMatchesIdentity,
  acceptsSignerTokens,
} from '../apply/external-tokens.ts'
import type { State } from '../records/state.ts'
import { isDisabled } from '../../lib/is-disabled.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { parseFields } from '../apply/entity.ts'
import {
  acceptedOutcome,
  fieldFaultOutcome,
  notFoundOutcome,
  refusedOutcome,
} from '../apply/outcome.ts'
import { deletePasswordAttempts } from '../identities/password-attempt.ts'
import { removeWithReferences } from '../apply/references.ts'

/**
 * Maximum API sessions in the whole network. Sessions expire, so the actual number is far lower.
 */
export const apiSessionsMax = 1_000_000
/**
 * Maximum API sessions of one identity. Many programs may share an identity, so the limit is far
 * above normal use; but it is far below `apiSessionsMax`, so that one identity cannot exhaust the
 * total.
 */
export const apiSessionsPerIdentityMax = 1000
/**
 * Maximum number of sessions of one identity whose OAuth code is not redeemed yet. The code flow
 * creates such a session early to record a second factor; a further one ends the oldest. The number
 * is limited, because the first factor alone is enough to create such a session.
 */
export const sessionsAwaitingCodeMax = 20

/**
 * Stores the environment and SDK details that the client reported. Empty bytes leave the stored
 * details unchanged.
 */
function noteClient(
  state: State,
  identity: Identity,
  message: SessionCreate,
  context: CommandContext,
): void {
  if (message.envInfoJson.length === 0 && message.sdkInfoJson.length === 0) return
  const { envInfoJson, sdkInfoJson } = message
  const reported = {
    envInfo: envInfoJson.length === 0 ? identity.envInfo : parseFields(envInfoJson),
    sdkInfo: sdkInfoJson.length === 0 ? identity.sdkInfo : parseFields(sdkInfoJson),
  }
  // Unchanged details are not written: clients report the same details at each log-in, and every
  // controller writes each change to disk.
  if (
    isSameJson(reported.envInfo, identity.envInfo) &&
    isSameJson(reported.sdkInfo, identity.sdkInfo)
  )
    return
  state.put('identity', { ...identity, ...reported, revision: context.index })
}

/**
 * Stores whether the certificate used for the last log-in chains to a root certificate of the
 * network, so that operators can plan its renewal.
 */
function noteChain(
  state: State,
  authenticator: Authenticator,
  lastAuthResolvedToRoot: boolean,
  { index: revision }: CommandContext,
): void {
  if (authenticator.lastAuthResolvedToRoot === lastAuthResolvedToRoot) return
  state.put('authenticator', { ...authenticator, lastAuthResolvedToRoot, revision })
}

/**
 * Whether the identity may still log in with the certificate: the authenticator may have a new
 * certificate, or the CA may have been disabled.
 */
function isStillHeld(
  state: State,
  identity: Identity,
  authenticator: Authenticator | undefined,
  { fingerprint, caId, externalId }: CertificateProof,
): boolean {
  const isByClaim = externalId !== ''
  if (isByClaim ? identity.externalId !== externalId : authenticator?.fingerprint !== fingerprint) {
    return false
  }
  if (caId === '') return !isByClaim
  return isCaAcceptedForLogIn(state.get('ca', caId))
}

/**
 * Whether the identity's auth policy still allows a log-in with this certificate or password; the
 * policy may have changed since the credential was checked. For a token, `isStillTaken` checks the
 * policy.
 */
function isMethodAllowed(
  state: State,
  identity: Identity,
  { certificate, authenticatorId }: SessionCreate,
): boolean {
  const primary = identityAuthPolicy(state, identity)?.primary
  if (certificate !== undefined) return primary?.cert.allowed === true
  return authenticatorId === '' || primary?.updb.allowed === true
}

/**
 * Whether a token still identifies the identity: the token's signer, the auth policy or the
 * identity itself may have changed after the token was checked.
 */
function isStillTaken(state: State, identity: Identity, { signerId, claim }: TokenProof): boolean {
  const signer = findEnabledSigner(state, signerId)
  if (signer === undefined || !claimMatchesIdentity(signer, claim, identity)) return false
  // @guard forged-tokens--policy
  return acceptsSignerTokens(identityAuthPolicy(state, identity), signerId)
}

/**
 * Creates the session for a log-in. The credential was checked before the proposal; this function
 * checks that the identity still exists and may log in.
 */
export function createApiSession(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const message = fromBinary(SessionCreateSchema, payload)
  const identity = state.get('identity', message.identityId)
  const authenticator = state.get('authenticator', message.authenticatorId)
  if (identity === undefined || isDisabled(identity, context.logTimeMs)) {
    return refusedOutcome('INVALID_AUTH')
  }
  if (message.authenticatorId !== '' && authenticator?.identityId !== identity.id) {
    return refusedOutcome('INVALID_AUTH')
  }
  if (!isMethodAllowed(state, identity, message)) return refusedOutcome('INVALID_AUTH')
  const { certificate, token } = message
  if (certificate !== undefined && !isStillHeld(state, identity, authenticator, certificate)) {
    return refusedOutcome('INVALID_AUTH')
  }
  if (token !== undefined && !isStillTaken(state, identity, token))
    return refusedOutcome('INVALID_AUTH')
  // The failed attempts are reset, because the credential was correct, even if the session is
  // refused for another reason.
  deletePasswordAttempts(state, message.authenticatorId)
  if (message.oidc?.isBegun === true) return redeemCode(state, message, message.oidc, context)
  if (message.id === '' || state.get('apiSession', message.id) !== undefined) {
    return fieldFaultOutcome({ field: 'id', reason: 'id must be unique' })
  }
  // The tokens of an ended session may not have expired, and its code may still be redeemable, so
  // the same session is never created again.
  // @guard oidc/code-flow--ended
  if (message.oidc !== undefined && state.get('revocation', message.id) !== undefined) {
    return refusedOutcome('INVALID_AUTH', 'the session has ended; log in again')
  }
  if (state.table('apiSession').rows.size >= apiSessionsMax) {
    return refusedOutcome('SERVER_TOO_MANY_REQUESTS')
  }
  const own = state.table('apiSession').indexes.ids('identityId', identity.id).size
  // @guard filling-the-state--api-sessions
  if (own >= apiSessionsPerIdentityMax) {
    const advice = 'log out of some, or wait until they end unused'
    return refusedOutcome(
      'SERVER_TOO_MANY_REQUESTS',
      `the identity has ${own} API sessions; ${advice}`,
    )
  }
  if (message.oidc?.codeHash === '') endOldestBegun(state, identity.id, context)
  state.put('apiSession', {
    id: message.id,
    createdAt: context.logTimeMs,
    updatedAt: context.logTimeMs,
    lastActivityAt: context.logTimeMs,
    revision: context.index,
    identityId: identity.id,
    authenticatorId: message.authenticatorId,
    caId: certificate?.externalId ? certificate.caId : '',
    signerId: token?.signerId ?? '',
    certFingerprint: certificate?.fingerprint ?? null,
    hasImproperChain: certificate?.improperChain ?? false,
    ipAddress: message.ipAddress,
    configTypes: message.configTypes,
    api: isApi(message.api) ? message.api : '',
    clientId: message.oidc?.clientId ?? '',
    codeHash: message.oidc?.codeHash ?? '',
    codeRedeemedAt: message.oidc?.codeHash ? context.logTimeMs : null,
    certificateRequest: message.oidc?.certificateRequest ?? '',
    isMfaComplete: false,
    mfaPassedAt: null,
  })
  noteClient(state, identity, message, context)
  if (certificate !== undefined && authenticator?.isIssuedByNetwork === true) {
    noteChain(state, authenticator, !certificate.improperChain, context)
  }
  return acceptedOutcome(message.id)
}

/**
 * If the identity has too many sessions whose code is not redeemed, ends the oldest one before
 * another begins.
 */
function endOldestBegun(state: State, identityId: string, context: CommandContext): void {
  const begun = [...state.table('apiSession').indexes.ids('identityId', identityId)]
    .flatMap((id) => state.get('apiSession', id) ?? [])
    .filter(({ clientId, codeHash }) => Boolean(clientId) && codeHash === '')
  // @guard oidc/floods--begun
  if (begun.length < sessionsAwaitingCodeMax) return
  const [oldest] = begun.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
  if (oldest !== undefined) removeWithReferences(state, apiSession, oldest, context)
}

/**
 * Redeems the code of an existing session, which an earlier command created to record a second
 * factor. The credential was checked at that time. A code can be redeemed only once, and an ended
 * session is not created again.
 */
function redeemCode(
  state: State,
  { id, identityId }: SessionCreate,
  { clientId, codeHash }: OidcProof,
  context: CommandContext,
): Outcome {
  const session = state.get('apiSession', id)
  const isOfFlow = session?.identityId === identityId && session.clientId === clientId
  if (!isOfFlow || session.codeHash !== '' || codeHash === '') return refusedOutcome('INVALID_AUTH')
  const { logTimeMs: updatedAt, index: revision } = context
  state.put('apiSession', {
    ...session,
    codeHash,
    codeRedeemedAt: updatedAt,
    updatedAt,
    lastActivityAt: updatedAt,
    revision,
  })
  return acceptedOutcome(id)
}

function isApi(text: string): text is 'client' | 'management' {
  return text === 'client' || text === 'management'
}

/** Ends an API session and everything that depends on it. */
export function deleteApiSession(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { id } = fromBinary(SessionDeleteSchema, payload)
  const session = state.get('apiSession', id)
  if (session === undefined) return notFoundOutcome('apiSession', id)
  removeWithReferences(state, apiSession, session, context)
  return acceptedOutcome(id)
}

/**
 * Updates the last activity of sessions. The value never decreases, and never exceeds log time, so
 * that a controller whose clock is ahead cannot prolong a session.
 */
export function updateSessionActivity(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  for (const mark of fromBinary(SessionTouchSchema, payload).marks) {
    const session = state.get('apiSession', mark.id)
    const atMs = Math.min(Number(mark.atMs), context.logTimeMs)
    if (session === undefined) continue
    const isFirstUse = isNotBoundToApi(session) && isApi(mark.api)
    const lastActivityAt = Math.max(atMs, session.lastActivityAt ?? 0)
    // @guard oidc/code-flow--used
    const endsCode = (isFirstUse || mark.isRenewal) && Boolean(session.codeRedeemedAt)
    const isMoved = lastActivityAt !== (session.lastActivityAt ?? 0)
    if (!isFirstUse && !isMoved && !endsCode) continue
    const api = isFirstUse ? { api: mark.api } : {}
    const code = endsCode ? { codeRedeemedAt: null } : {}
    state.put('apiSession', {
      ...session,
      ...api,
      ...code,
      lastActivityAt,
      revision: context.index,
    })
  }
  return acceptedOutcome('')
}

/** Feature level from which log time decides whether a session has expired. */
const JUDGED_FROM_LEVEL = 2

/**
 * Ends sessions that had no activity since the leader checked them. Log time must have reached
 * their expiry, because the leader's clock may be wrong. Refused if the command names sessions but
 * ends none.
 */
export function expireSessions(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { marks } = fromBinary(SessionExpireSchema, payload)
  let ended = 0
  for (const mark of marks) {
    const session = state.get('apiSession', mark.id)
    // @guard 26-expiry-not-judged-again
    if (session === undefined || session.lastActivityAt !== Number(mark.lastActivityMs)) continue
    // @guard clock-of-the-leader--apply
    if (state.featureLevel >= JUDGED_FROM_LEVEL && !hasEnded(mark, context)) continue
    removeWithReferences(state, apiSession, session, context)
    ended += 1
  }
  return ended === 0 && marks.length > 0 ? refusedOutcome('REVISION_MOVED') : acceptedOutcome('')
}

/**
 * Whether log time has reached the expiry; false for a command from an older controller, which
 * contains no expiry.
 */
function hasEnded(
  { expiresAtMs }: Pick<SessionExpire_Mark, 'expiresAtMs'>,
  { logTimeMs }: CommandContext,
): boolean {
  return expiresAtMs > 0n && expiresAtMs <= BigInt(logTimeMs)
}
