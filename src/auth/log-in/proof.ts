import type { MessageInitShape } from '@bufbuild/protobuf'
import type { CertificateProofSchema } from '../../../proto/gen/command_pb.ts'
import type { Authenticator } from '../../entities/kinds/authenticator.ts'
import type { VerifiedToken } from '../tokens/token-verifier.ts'

/** A correct credential, and the identity that it proves. */
export interface CredentialProof {
  readonly identityId: string
  /**
   * Undefined if the proof is a claim of a third-party CA, an external JWT, or the existing session
   * of an OIDC log-in.
   */
  readonly authenticator: Authenticator | undefined
  readonly certificate?: MessageInitShape<typeof CertificateProofSchema>
  readonly token?: VerifiedToken
}
