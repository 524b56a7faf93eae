import { readTextFile } from '../terminal/text-file.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { readSecretFile, SecretFileError } from '../../pki/secret-file.ts'
import type { HttpsServerTarget } from './verifying-https-agent.ts'
import type { NetworkContext } from './context-file.ts'

export type ClientTlsKey = NonNullable<HttpsServerTarget['client']>

/** @throws {CommandFailure} exit 1 with the name of the faulty file. */
export function readClientTlsKey(cert: string, key: string): ClientTlsKey {
  try {
    return { certificatePem: readTextFile(cert), privateKeyPem: readSecretFile(key).text }
  } catch (error) {
    const isKey = error instanceof SecretFileError
    const message = isKey ? `--key: ${error.message}` : `--cert: ${cert} (${errorMessage(error)})`
    throw new CommandFailure(EXIT_FAILED, message, error)
  }
}

/**
 * Client certificate and key for all connections of a context. They are set only for an OIDC
 * session that was opened with a client certificate: such a session is valid only on connections
 * with a client certificate of the session or of its identity.
 * @throws {CommandFailure} exit 1.
 */
export function contextTlsKey({ logIn, renewal }: NetworkContext): {
  readonly client?: ClientTlsKey
} {
  const isBound = logIn.method === 'cert' && renewal !== null && renewal !== undefined
  return isBound ? { client: readClientTlsKey(logIn.cert, logIn.key) } : {}
}
