import type { JsonObject } from '../lib/canonical-json.ts'

/** JSON Web Tokens of the controllers: for routers, enrolling clients, and whoever knows their certificates. */
export interface JwtSigner {
  /** Signs with the key of this controller's leaf; `kid` is the SHA-1 fingerprint of the leaf, in hex. */
  sign(claims: JsonObject): Promise<string>
  /**
   * The claims of a token that this controller or another current member has signed and whose time (`exp`, `nbf`) is now;
   * null for anything else. Issuer, audience and purpose are for the caller to judge.
   */
  verify(token: string): Promise<JsonObject | null>
}
