import type { JsonObject } from '../../lib/text/canonical-json.ts'
import type { VerifiedJwt } from '../../pki/jwt-verifier.ts'

interface ClaimsOptions {
  /**
   * True: accepts expired tokens. Use only for a token that identifies something without granting
   * access.
   */
  readonly isExpiredAllowed: boolean
}

/**
 * Signs JSON Web Tokens of the controllers. Routers, enrolling clients and all others that have the
 * controllers' certificates can verify these tokens.
 */
export interface JwtSigner {
  /**
   * Signs with the key of this controller's leaf; `kid` is the SHA-1 fingerprint of the leaf, in
   * hex.
   */
  sign(claims: JsonObject): Promise<string>
  /**
   * The claims of a token that a current member signed and that is valid now by `exp` and `nbf`;
   * null otherwise. The caller must check issuer, audience and purpose.
   */
  verify(token: string, options?: ClaimsOptions): Promise<JsonObject | null>
  /** Like `verify`, and returns the id of the key that signed the token. */
  verifyWithKey(token: string, options?: ClaimsOptions): Promise<VerifiedJwt | null>
  /**
   * The claims of a token that a removed member signed and that is valid now; null for anything
   * else. The removed member may have signed the token after its removal.
   */
  verifyFormer(token: string): Promise<(VerifiedJwt & { readonly removedAtMs: number }) | null>
  /**
   * Whether the key belongs to a current member: tokens of a member become invalid with its
   * removal.
   */
  isMemberKey(keyId: string): boolean
  /**
   * Public key of the current leaf as a JSON Web Key (RFC 7517), with `kid` and `alg` and without
   * private members.
   */
  publicJwk(): JsonObject
  /** Keys of all current members, this controller's key first. `verify` accepts only these keys. */
  publicJwks(): readonly JsonObject[]
  /**
   * Signs a string unchanged, as JWS does (RFC 7518, 3). `signature` is base64url; for an EC key it
   * is the concatenation of the numbers r and s.
   */
  signText(text: string): Promise<{
    readonly algorithm: string
    readonly kid: string
    readonly signature: string
  }>
}
