import { resolve } from 'node:path'

import { CommandFailure, EXIT_DENIED, EXIT_USAGE } from '../../controller/command-failure.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import type { PendingFactor } from '../../fsm/apply/authentication.ts'
import { type ClientTlsKey, readClientTlsKey } from '../client/client-key.ts'
import type { NetworkContext, LogInMethod } from '../client/context-file.ts'
import { promptHidden, promptLine, isInteractive } from '../terminal/prompt.ts'
import { readSecretInput } from '../terminal/secret-input.ts'

export interface CredentialOptions {
  readonly user?: string
  readonly passwordFile?: string
  readonly cert?: string
  readonly key?: string
  readonly jwtFile?: string
  readonly browser?: boolean
  readonly device?: boolean
  readonly codeFile?: string
}

/** The secrets of a log-in. */
export interface Credential {
  readonly password?: string
  readonly client?: ClientTlsKey
  /** A token of an identity provider, as the only credential or as a second factor. */
  readonly jwt?: string
}

/**
 * @param before the existing context that the log-in will replace; its log-in method is used if the
 * options contain none.
 */
export async function chooseLogInMethod(
  options: CredentialOptions,
  before: NetworkContext | undefined,
): Promise<LogInMethod> {
  const { user, cert, key, jwtFile, browser = false, device = false } = options
  if ((cert === undefined) !== (key === undefined)) {
    throw new CommandFailure(EXIT_USAGE, '--cert and --key must be given together')
  }
  const ways: LogInMethod[] = [
    ...(cert === undefined || key === undefined
      ? []
      : [{ method: 'cert', cert: resolve(cert), key: resolve(key) } as const]),
    ...(user === undefined ? [] : [{ method: 'password', username: user } as const]),
    ...(browser ? [{ method: 'browser' } as const] : []),
    ...(device ? [{ method: 'device' } as const] : []),
  ]
  if (ways.length > 1) {
    throw new CommandFailure(
      EXIT_USAGE,
      'log in in one way: with --user, with --cert and --key, with --browser or with --device',
    )
  }
  const [way] = ways
  if (way !== undefined) return way
  if (jwtFile !== undefined) {
    return { method: 'ext-jwt', jwtFile: jwtFile === '-' ? '-' : resolve(jwtFile) }
  }
  if (before !== undefined) return before.logIn
  const username = isInteractive() ? await promptLine('User: ') : ''
  if (username !== '') return { method: 'password', username }
  throw new CommandFailure(
    EXIT_USAGE,
    'name the user: --user NAME, or log in with --browser, --device, --jwt-file FILE, or --cert FILE and --key FILE',
  )
}

export async function readLogInCredential(
  method: LogInMethod,
  options: CredentialOptions,
): Promise<Credential> {
  const { jwtFile, passwordFile } = options
  const second =
    jwtFile === undefined || method.method === 'ext-jwt'
      ? {}
      : { jwt: readSecretInput(jwtFile, 'the token') }
  switch (method.method) {
    case 'cert':
      return { ...second, client: readClientTlsKey(method.cert, method.key) }
    case 'ext-jwt':
      return { jwt: readSecretInput(method.jwtFile, 'the token') }
    case 'browser':
    case 'device':
      return {}
    case 'password':
      if (passwordFile !== undefined) {
        return { ...second, password: readSecretInput(passwordFile, 'the password') }
      }
      if (isInteractive()) {
        return { ...second, password: await promptHidden(`Password of ${method.username}: `) }
      }
      throw new CommandFailure(
        EXIT_USAGE,
        'no terminal to prompt for the password; pass --password-file FILE, or - for standard input',
      )
  }
}

/** Reads a TOTP code or a recovery code. */
export async function readSecondFactorCode({ codeFile }: CredentialOptions): Promise<string> {
  if (codeFile !== undefined) return readSecretInput(codeFile, 'the code')
  if (isInteractive()) return await promptLine('Code of the authenticator app: ')
  throw new CommandFailure(
    EXIT_DENIED,
    'this identity needs a code of its authenticator app; pass --code-file FILE, or - for standard input',
  )
}

export function logInRefusedFailure(method: LogInMethod, error: unknown): CommandFailure {
  const reasons: Readonly<Record<LogInMethod['method'], string>> = {
    password: 'the user name or the password is wrong, or the identity is disabled or locked',
    cert: 'the certificate is not one of an enabled identity, or its policy does not allow it',
    'ext-jwt':
      'the token is not one of an enabled identity, its time is over, or no signer vouches for it',
    browser: 'the log-in was not completed',
    device: 'the log-in was not completed',
  }
  return new CommandFailure(EXIT_DENIED, `log-in refused: ${reasons[method.method]}`, error)
}

/** A factor that a controller still requires for a log-in, in the format of its response. */
export type AuthQuery = Readonly<Record<string, unknown>>

/**
 * Types of auth queries that request each second factor, in OpenID Connect and in the REST API. The
 * record has an entry for every kind of factor: for a new kind, the compiler requires a decision
 * whether this program supports it.
 */
const queryTypes: Readonly<Record<PendingFactor['kind'], readonly string[]>> = {
  totp: ['TOTP', 'MFA'],
  extJwt: ['EXT-JWT'],
}

export function requiresTotpCode(query: AuthQuery | null): boolean {
  return queryTypes.totp.includes(typeOf(query))
}

/**
 * Failure of a log-in for which a second factor is missing.
 * @param elsewhere where the user can provide a factor that the command line does not support.
 */
export function missingFactorFailure(
  queries: readonly (AuthQuery | null)[],
  elsewhere: string,
): CommandFailure {
  const known = Object.values(queryTypes).flat()
  const types = new Set(queries.map(typeOf).filter((type) => !known.includes(type)))
  if (types.size === 0) {
    return new CommandFailure(
      EXIT_DENIED,
      'this identity also needs a token of an identity provider; pass it with --jwt-file FILE',
    )
  }
  const names = Array.from(types, (type) => printableLine(type, 40) || 'without a name').join(', ')
  return new CommandFailure(
    EXIT_DENIED,
    `this identity also needs a second factor that this version of flotilla does not know: ${names}; ${elsewhere}`,
  )
}

function typeOf(query: AuthQuery | null): string {
  return String(query?.['typeId'] ?? '')
}
