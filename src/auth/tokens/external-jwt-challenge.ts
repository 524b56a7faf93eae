import type { ExternalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'

/** Challenge for a client whose request lacks a valid token of an identity provider. */
export interface ExternalJwtChallenge {
  readonly realm: 'openziti-primary-ext-jwt' | 'openziti-secondary-ext-jwt'
  readonly error: 'missing' | 'invalid' | 'expired'
  /** Signers whose tokens are accepted. */
  readonly signers: readonly Pick<ExternalJwtSigner, 'id' | 'issuer'>[]
}
