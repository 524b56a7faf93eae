import { ApiClient, type ApiClientOptions } from '../client/api-client.ts'
import type { LogInMethod, SessionRenewal } from '../client/context-file.ts'
import type { Credential } from './credential.ts'

export interface SessionOpeningOptions {
  /** Origins of the controllers, in the order in which they are tried. */
  readonly controllers: readonly string[]
  readonly caPem: string | null
  readonly method: LogInMethod
  readonly credential: Credential
  /** Reads a TOTP code or a recovery code, from a file or from a prompt. */
  readonly code: () => Promise<string>
}

export interface LogInResult {
  /** A secret. */
  readonly token: string
  readonly renewal: SessionRenewal | null
  /** Name of the identity. */
  readonly identity: string
}

/**
 * A client for a log-in: without a token, or with that of a session that may lack second factors.
 */
export function createLogInClient(
  { controllers, caPem, credential }: SessionOpeningOptions,
  token: string | null,
): ApiClient {
  const { client } = credential
  const options: ApiClientOptions = { controllers, caPem, token, logInAgain: 'flotilla login' }
  return new ApiClient(client === undefined ? options : { ...options, client })
}
