import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import { hasMfa, type PendingFactor, requiredFactors } from '../../fsm/apply/authentication.ts'
import type { Caller } from '../../auth/principal/principal.ts'
import { rfc3339Text } from '../http/responses/envelope.ts'
import type { RecordSource, StateView } from '../../ports/state-view.ts'
import type { ApiLimits } from '../limits.ts'
import { callerAccessExpiry, type SessionTracker } from '../../auth/sessions/session-tracker.ts'
import type { Clock } from '../../lib/clock.ts'
import type { SessionTokenSigner } from '../../auth/sessions/session-token-signer.ts'

interface SessionViewDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly limits: ApiLimits
  readonly sessions: SessionTracker
  readonly tokens: SessionTokenSigner
}

/**
 * A session, for its owner and for other callers. Only the owner sees the session token, exactly as
 * the owner sent it. Only a log-in returns a token that is signed with the newest key; otherwise a
 * caller with a token of an old key would receive a new token, and keep access after the key's
 * overlap.
 */
export function sessionView(
  { state, sessions, tokens }: Omit<SessionViewDeps, 'limits' | 'clock'>,
  caller: Caller,
  session: ApiSession,
): Record<string, unknown> {
  const detail = state.detail('apiSession', session, caller.identity.id)
  const records = state.recordsNow
  const { accessToken = null, keyVersion = undefined } = caller.kind === 'session' ? caller : {}
  const holder = records.get('identity', session.identityId)
  return {
    ...detail,
    // If an external ID claim of a third-party CA opened the session, no authenticator record
    // belongs to it, and the view contains the id `internal`.
    ...(session.caId === '' ? {} : { authenticatorId: 'internal' }),
    ...(session.signerId === '' ? {} : { authenticatorId: tokenAuthenticator(session) }),
    isMfaRequired: holder !== undefined && isMfaRequired(records, holder),
    cachedLastActivityAt: rfc3339Text(sessions.lastUseMs(session)),
    token:
      session.id === caller.session.id
        ? (accessToken?.text ?? tokens.tokenOf(session.id, keyVersion))
        : session.id,
  }
}

/**
 * The caller's own session, as log-in and /current-api-session return it. Without an access token,
 * the expiry is computed from the time of this request: clients poll the session, and would log in
 * again once a fixed expiry had passed.
 */
export function currentSessionView(deps: SessionViewDeps, caller: Caller): Record<string, unknown> {
  const { expiresAtMs, leftSeconds } = callerAccessExpiry(
    deps,
    caller.kind === 'session' ? caller : { session: caller.session },
  )
  return {
    ...sessionView(deps, caller, caller.session),
    authQueries: caller.pendingFactors.map((factor) =>
      toAuthQuery(deps.state, caller.identity.id, factor),
    ),
    _links: {
      self: { href: './current-api-session' },
      'current-identity': { href: './current-identity' },
    },
    expirationSeconds: leftSeconds,
    expiresAt: rfc3339Text(expiresAtMs),
  }
}

/**
 * Whether sessions of an identity require a TOTP code, whether or not the code was already
 * submitted.
 */
function isMfaRequired(records: RecordSource, holder: Identity): boolean {
  return requiredFactors(records, holder)?.some(({ kind }) => kind === 'totp') ?? true
}

/** Name of the authenticator, as in OpenZiti, for a session that was opened with a token. */
function tokenAuthenticator({ signerId }: ApiSession): string {
  return `extJwtId:${signerId}`
}

/**
 * The auth query, which describes how a client provides a second factor. Its fields are those that
 * OpenZiti SDKs and consoles read.
 */
export function toAuthQuery(
  state: Pick<SessionViewDeps['state'], 'get'>,
  identityId: string,
  factor: PendingFactor,
): Record<string, unknown> {
  switch (factor.kind) {
    case 'totp':
      return {
        typeId: 'MFA',
        provider: 'ziti',
        format: 'alphaNumeric',
        minLength: 4,
        maxLength: 6,
        httpMethod: 'POST',
        httpUrl: './authenticate/mfa',
        isTotpEnrolled: hasMfa(state, identityId),
      }
    case 'extJwt': {
      const signer = state.get('externalJwtSigner', factor.signerId)
      return {
        typeId: 'EXT-JWT',
        provider: 'url',
        id: factor.signerId,
        httpUrl: signer?.externalAuthUrl ?? '',
        clientId: signer?.clientId ?? '',
        scopes: signer?.scopes ?? [],
      }
    }
  }
}
