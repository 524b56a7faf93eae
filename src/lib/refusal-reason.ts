/**
 * Reasons why a log-in was refused; for the operator's log, audit and events. The refused client
 * never receives the reason, because it reveals which identities, signers and certificates exist.
 */
export const refusalReasons = {
  TOKEN_MISSING: 'the request has no bearer token',
  TOKEN_TOO_LONG: 'the token is longer than a controller reads',
  TOKEN_MALFORMED: 'the token is not a signed JWT with `alg`, `kid` and `iss`',
  TOKEN_ISSUER_UNKNOWN: 'no enabled signer is configured for the issuer of the token',
  TOKEN_ALGORITHM: 'the key of the signer does not fit the algorithm of the token',
  TOKEN_KEY_UNKNOWN: 'the signer has no key with the `kid` of the token',
  TOKEN_KEYS_UNREACHABLE: 'the keys of the signer could not be fetched',
  TOKEN_KEY_EXPIRED: 'the certificate of the signer is not valid now',
  TOKEN_SIGNATURE: 'the signature does not verify',
  TOKEN_AUDIENCE: 'the token is for another audience, or the signer has no audience configured',
  TOKEN_EXPIRED: 'the token has expired',
  TOKEN_NOT_YET_VALID: 'the token is not valid yet, or was issued in the future',
  TOKEN_CLAIM_INVALID: 'a required time claim of the token is missing, or its value is not a time',
  TOKEN_CLAIM_MISSING:
    'the token lacks the claim that names the identity, or this claim is not a string',
  TOKEN_OTHER_IDENTITY: 'the tokens of the request name different identities',
  CERTIFICATE_MISSING: 'the connection has no client certificate',
  CERTIFICATE_UNTRUSTED: 'the certificate chains to no CA that may authenticate',
  CERTIFICATE_UNKNOWN: 'the certificate belongs to no identity',
  CERTIFICATE_EXPIRED: 'the certificate has expired, and the auth policy requires a valid one',
  CERTIFICATE_NOT_YET_VALID: 'the certificate is not valid yet',
  USERNAME_UNKNOWN: 'no identity has the user name',
  PASSWORD_WRONG: 'the password is wrong',
  PASSWORD_LOCKED: 'the password is locked after wrong attempts',
  CREDENTIAL_CHANGED: 'the credential or a record that it depends on changed during the log-in',
  IDENTITY_UNKNOWN: 'no identity has the ID or external ID of the credential',
  IDENTITY_DISABLED: 'the identity is disabled',
  METHOD_NOT_ALLOWED: 'the auth policy of the identity does not allow this method or signer',
} as const

export type LogInRefusalReason = keyof typeof refusalReasons

/** Why the controller refused a credential. */
export interface RefusalCause {
  readonly reason: LogInRefusalReason
  /** The external JWT signer with the token's issuer; absent if no signer matched. */
  readonly signerId?: string
  /** Name of the claim at fault, or its selector; never its value. */
  readonly claim?: string
}
