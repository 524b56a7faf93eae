import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import type { LogInRefusalReason, RefusalCause } from '../../lib/refusal-reason.ts'
import { selectClaim } from '../tokens/claims.ts'
import { type RefusedToken, unreadableTokenRefusal } from '../tokens/token-verifier.ts'
import {
  parseUnverifiedToken,
  type UnverifiedToken,
  readUnverifiedClaims,
} from '../tokens/unverified-token.ts'
import {
  signerLogInRefusal,
  findIdentityByClaim,
  type ExternalJwtLogInDeps,
} from './external-jwt.ts'

/**
 * The checks of a log-in by token, in the order in which a controller makes them; for a signer
 * without an audience, a controller makes the check of the audience before that of the key.
 */
export const tokenChecks = [
  'form',
  'issuer',
  'signerEnabled',
  'key',
  'algorithm',
  'signature',
  'audience',
  'time',
  'claim',
  'identity',
  'policy',
] as const
export type TokenCheckName = (typeof tokenChecks)[number]

/** The check that fails, by the reason of a refusal. */
const checkOfReason: Readonly<Partial<Record<LogInRefusalReason, TokenCheckName>>> = {
  TOKEN_TOO_LONG: 'form',
  TOKEN_MALFORMED: 'form',
  TOKEN_ISSUER_UNKNOWN: 'issuer',
  TOKEN_KEYS_UNREACHABLE: 'key',
  TOKEN_KEY_UNKNOWN: 'key',
  TOKEN_KEY_EXPIRED: 'key',
  TOKEN_ALGORITHM: 'algorithm',
  TOKEN_SIGNATURE: 'signature',
  TOKEN_AUDIENCE: 'audience',
  TOKEN_EXPIRED: 'time',
  TOKEN_NOT_YET_VALID: 'time',
  TOKEN_CLAIM_INVALID: 'time',
  TOKEN_CLAIM_MISSING: 'claim',
  IDENTITY_UNKNOWN: 'identity',
  IDENTITY_DISABLED: 'identity',
  METHOD_NOT_ALLOWED: 'policy',
}

export interface TokenCheck {
  readonly check: TokenCheckName
  /** `unchecked`: another check failed first, so a controller does not make this check. */
  readonly state: 'passed' | 'failed' | 'unchecked'
  readonly reason: LogInRefusalReason | null
  /**
   * Name or JSON pointer of the claim that the check compares; null if the check compares no claim.
   */
  readonly claim: string | null
  /** The value in the token; unverified, unless the check `signature` passed. */
  readonly found: string | null
  /**
   * The value that the signer's record requires; for `identity` the field of the identity that must
   * equal the claim, for `policy` the id of the identity's auth policy.
   */
  readonly expected: string | null
}

export interface TokenTestReport {
  readonly checks: readonly TokenCheck[]
  /** Whether a log-in with this token would succeed now. */
  readonly logsIn: boolean
  readonly signer: ExternalJwtSigner | null
  /**
   * The identity that the token names; null if there is none, or if the token itself was refused.
   */
  readonly identity: Identity | null
  /**
   * Whether the token could create an identity, because its enabled signer allows enrollment and no
   * identity has the token's claim yet.
   */
  readonly enrolls: boolean
  /** Names of the first claims in the token, shortened; at most `NAMES_MAX`. */
  readonly claimNames: readonly string[]
}

const NAMES_MAX = 64
const CHARACTERS_MAX = 256

/**
 * Tests a token as a log-in would verify it, without logging in: no record is written, and the
 * result is neither cached nor logged. The test may fetch the signer's keys, as a log-in would.
 * @param given the signer to test; null: the signer for the issuer that the token names.
 * @throws {Problem} SERVER_TOO_MANY_REQUESTS.
 */
export async function testToken(
  deps: ExternalJwtLogInDeps,
  address: string,
  text: string,
  given: ExternalJwtSigner | null,
): Promise<TokenTestReport> {
  const token = parseUnverifiedToken(text)
  if (token === null) return reportOf(unreadableTokenRefusal(text).cause, { signer: given })
  // Also finds a disabled signer, so that the report can say that the signer is disabled instead of
  // that the issuer is unknown.
  const { state } = deps
  const signer = given ?? state.find('externalJwtSigner', 'issuer', token.issuer) ?? null
  if (signer === null || signer.issuer !== token.issuer) {
    return reportOf({ reason: 'TOKEN_ISSUER_UNKNOWN' }, { token, signer })
  }
  const found = await deps.externalTokens.verifyForTest(address, token, signer)
  if ('error' in found) return reportOf(found.cause, { token, signer })
  const identity = findIdentityByClaim(deps, signer, found.verified.claim) ?? null
  if (identity === null) return reportOf({ reason: 'IDENTITY_UNKNOWN' }, { token, signer })
  return reportOf(signerLogInRefusal(deps, signer.id, identity), { token, signer, identity })
}

interface Tested {
  readonly token?: UnverifiedToken
  readonly signer: ExternalJwtSigner | null
  readonly identity?: Identity
}

function reportOf(cause: RefusedToken['cause'] | null, tested: Tested): TokenTestReport {
  const { token, signer, identity = null } = tested
  const claims = token === undefined ? {} : readUnverifiedClaims(token)
  const failed = cause === null ? null : (checkOfReason[cause.reason] ?? 'form')
  // For a signer without an audience, the audience check fails before the signer's keys are read,
  // so the checks of key, algorithm and signature stay unchecked.
  const isEarly = failed === 'audience' && signer?.audience === ''
  const reached = isEarly ? tokenChecks.indexOf('key') : tokenChecks.indexOf(failed ?? 'policy')
  const isDisabled = signer !== null && !signer.enabled
  const checks = tokenChecks.map((check, at): TokenCheck => {
    const state =
      check === failed || (check === 'signerEnabled' && isDisabled)
        ? 'failed'
        : at < reached || failed === null
          ? 'passed'
          : 'unchecked'
    const reason =
      state !== 'failed'
        ? null
        : check === failed
          ? (cause?.reason ?? null)
          : 'TOKEN_ISSUER_UNKNOWN'
    return { check, state, reason, ...valuesOf(check, cause, tested, claims) }
  })
  return {
    checks,
    logsIn: checks.every(({ state }) => state === 'passed'),
    signer,
    identity,
    enrolls:
      cause?.reason === 'IDENTITY_UNKNOWN' &&
      signer !== null &&
      !isDisabled &&
      (signer.enrollToTokenEnabled || signer.enrollToCertEnabled),
    claimNames: Object.keys(claims)
      .slice(0, NAMES_MAX)
      .map((name) => name.slice(0, CHARACTERS_MAX)),
  }
}

type Values = Pick<TokenCheck, 'claim' | 'found' | 'expected'>
const noValues: Values = { claim: null, found: null, expected: null }

function valuesOf(
  check: TokenCheckName,
  cause: RefusalCause | null,
  { token, signer, identity }: Tested,
  claims: JsonObject,
): Values {
  if (token === undefined) return noValues
  const claim = (name: string, expected: string | null): Values => ({
    claim: name,
    found: shown(selectClaim(claims, name)),
    expected,
  })
  switch (check) {
    case 'issuer':
      return {
        ...claim('iss', signer?.issuer ?? null),
        found: token.issuer.slice(0, CHARACTERS_MAX),
      }
    case 'key':
      return {
        ...noValues,
        found: token.kid.slice(0, CHARACTERS_MAX),
        expected: signer?.kid || null,
      }
    case 'algorithm':
      return { ...noValues, found: token.algorithm.slice(0, CHARACTERS_MAX) }
    case 'audience':
      return claim('aud', signer === null ? null : signer.audience)
    case 'time':
      return timeOf(cause, claims)
    case 'claim':
      return signer === null ? noValues : claim(signer.claimsProperty, null)
    case 'identity':
      return signer === null
        ? noValues
        : claim(signer.claimsProperty, signer.useExternalId ? 'externalId' : 'id')
    case 'policy':
      return { ...noValues, expected: identity?.authPolicyId ?? null }
    default:
      return noValues
  }
}

/** The time claim that caused the refusal; if none did, the expiry. */
function timeOf(cause: RefusalCause | null, claims: JsonObject): Values {
  const name = cause?.claim === 'nbf' || cause?.claim === 'iat' ? cause.claim : 'exp'
  const seconds = claims[name]
  const date = new Date(typeof seconds === 'number' ? seconds * 1000 : Number.NaN)
  const found = Number.isNaN(date.getTime()) ? shown(seconds) : date.toISOString()
  return { claim: name, found, expected: null }
}

/** A claim's value as text, shortened to a maximum length. */
function shown(value: Json | undefined): string | null {
  if (value === undefined) return null
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, CHARACTERS_MAX)
}
