/** Errors of OAuth (RFC 6749, 7009 and 8628, 3.5) and OpenID Connect Core, 3.1.2.6. */
type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'login_required'
  | 'access_denied'
  | 'authorization_pending'
  | 'slow_down'
  | 'expired_token'

/** An OAuth request is refused. The description is for the developer of the client. */
export class OAuthError extends Error {
  override readonly name = 'OAuthError'
  readonly code: OAuthErrorCode

  constructor(code: OAuthErrorCode, description: string) {
    super(description)
    this.code = code
  }
}

/** Refusal of a code or token that is invalid, used or expired. */
export function invalidGrantError(description: string): OAuthError {
  return new OAuthError('invalid_grant', description)
}
