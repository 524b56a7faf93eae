/** A token of an OIDC session that a member signed and whose time is now. */
export interface OidcToken {
  readonly text: string
  readonly sessionId: string
  readonly identityId: string
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly issuer: string
  /** UTC ms. */
  readonly expiresAtMs: number
}
