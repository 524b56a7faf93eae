import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from '../../controller/failure.ts'
import { readSecretFile, SecretFileError } from '../../pki/key-file.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { askHidden, askLine, isInteractive } from '../terminal/prompt.ts'
import { readSecretInput } from '../terminal/secret-input.ts'
import { type ApiAnswer, ApiClient, type ApiClientOptions, baseUrl } from '../client/api-client.ts'
import {
  changeContexts,
  checkContextName,
  type Context,
  type ContextFile,
  contextLimits,
  type LogInMethod,
  readContexts,
  withContext,
} from '../client/context-file.ts'
import { ApiRefusal } from '../client/refusal.ts'
import { trustedCa } from './trust.ts'
import { errorMessage } from '../../lib/error-code.ts'

export interface LogInOptions {
  readonly user?: string
  readonly passwordFile?: string
  readonly cert?: string
  readonly key?: string
  readonly ca?: string
  readonly fingerprint?: string
  readonly codeFile?: string
  readonly context?: string
  readonly json?: boolean
}

/** Opens a session and makes its context the one in use. */
export async function logIn(urls: readonly string[], options: LogInOptions): Promise<void> {
  const given = [...new Set(urls.map((url) => baseUrl(url)))]
  const [first = ''] = given
  const file = readContexts()
  const name = checkContextName(options.context ?? nameFor(file, first))
  const before = Object.hasOwn(file.contexts, name) ? file.contexts[name] : undefined
  const method = await methodOf(options, before)
  const caPem = await trustedCa(first, { ...options, ...knownTrust(before, first) })
  const secret = await credentialOf(method, options)
  const opened = await openSession({ controllers: given, caPem, method, secret, options })
  const context: Context = {
    controllers: await everyController(given, caPem, opened.token),
    caPem,
    logIn: method,
    token: opened.token,
  }
  changeContexts((now) => ({ ...withContext(now, name, context), current: name }))
  if (options.json === true) {
    printJson({ context: name, controllers: context.controllers, identity: opened.identity })
  } else printLine(`logged in to ${first} as ${opened.identity}; current context: ${name}`)
}

/** The context that has this controller already, or one that is called by its address. */
function nameFor({ contexts }: ContextFile, controller: string): string {
  const known = Object.entries(contexts).find(([, { controllers }]) =>
    controllers.includes(controller),
  )
  return known?.[0] ?? new URL(controller).host
}

/**
 * What was trusted for this controller stays trusted; for another network it counts for nothing.
 */
function knownTrust(before: Context | undefined, controller: string): { known?: string | null } {
  return before?.controllers.includes(controller) === true ? { known: before.caPem } : {}
}

async function methodOf(
  { user, cert, key }: LogInOptions,
  before: Context | undefined,
): Promise<LogInMethod> {
  if ((cert === undefined) !== (key === undefined)) {
    throw new CommandFailure(EXIT_USAGE, '--cert and --key must be given together')
  }
  if (cert !== undefined && key !== undefined) {
    if (user === undefined) return { method: 'cert', cert: resolve(cert), key: resolve(key) }
    throw new CommandFailure(EXIT_USAGE, 'log in with --user, or with --cert and --key')
  }
  if (user !== undefined) return { method: 'password', username: user }
  if (before !== undefined) return before.logIn
  const username = isInteractive() ? await askLine('User: ') : ''
  if (username !== '') return { method: 'password', username }
  throw new CommandFailure(EXIT_USAGE, 'name the user: --user NAME, or --cert FILE and --key FILE')
}

type Credential =
  | { readonly password: string }
  | { readonly certificatePem: string; readonly privateKeyPem: string }

async function credentialOf(method: LogInMethod, options: LogInOptions): Promise<Credential> {
  if (method.method === 'cert') return clientKey(method.cert, method.key)
  const { passwordFile } = options
  if (passwordFile !== undefined) return { password: readSecretInput(passwordFile, 'the password') }
  if (isInteractive()) return { password: await askHidden(`Password of ${method.username}: `) }
  throw new CommandFailure(
    EXIT_USAGE,
    'no terminal to prompt for the password; pass --password-file FILE, or - for standard input',
  )
}

function clientKey(cert: string, key: string): Credential {
  try {
    return { certificatePem: readFileSync(cert, 'utf8'), privateKeyPem: readSecretFile(key).text }
  } catch (error) {
    const isKey = error instanceof SecretFileError
    const message = isKey ? `--key: ${error.message}` : `--cert: ${cert} (${errorMessage(error)})`
    throw new CommandFailure(EXIT_FAILED, message, error)
  }
}

interface Opening {
  readonly controllers: readonly string[]
  readonly caPem: string | null
  readonly method: LogInMethod
  readonly secret: Credential
  readonly options: LogInOptions
}

interface Opened {
  readonly token: string
  readonly identity: string
}

interface SessionDetail {
  readonly token: string
  readonly identity: { readonly name: string }
  readonly authQueries: readonly { readonly typeId?: string }[]
}

async function openSession(opening: Opening): Promise<Opened> {
  const { method, secret } = opening
  const { data, headers } = await authenticate(clientFor(opening, null), method, secret)
  const session = sessionIn(data)
  const told = headers['net-session'] ?? headers['zt-session']
  const token = typeof told === 'string' ? told : session.token
  await completeFactors(clientFor(opening, token), session, opening.options)
  return { token, identity: session.identity.name }
}

/** @throws {CommandFailure} when a success says nothing of a session: something else answered. */
export function sessionIn(data: unknown): SessionDetail {
  const { token, identity, authQueries } = (data ?? {}) as Readonly<Record<string, unknown>>
  const name = ((identity ?? {}) as Readonly<Record<string, unknown>>)['name']
  const queries = authQueries ?? []
  const isWhole = typeof token === 'string' && typeof name === 'string' && Array.isArray(queries)
  if (isWhole && queries.every((one) => typeof one === 'object' && one !== null)) {
    return { token, identity: { name }, authQueries: queries as SessionDetail['authQueries'] }
  }
  throw new CommandFailure(
    EXIT_FAILED,
    'the answer to the log-in is no session; is there a controller at this address?',
  )
}

async function authenticate(
  client: ApiClient,
  method: LogInMethod,
  secret: Credential,
): Promise<ApiAnswer> {
  const isPassword = method.method === 'password' && 'password' in secret
  try {
    return await client.ask({
      method: 'POST',
      path: `/authenticate?method=${isPassword ? 'password' : 'cert'}`,
      body: isPassword ? { username: method.username, password: secret.password } : {},
      isOnceOnly: true,
    })
  } catch (error) {
    throw logInFailure(method, error)
  }
}

function clientFor({ controllers, caPem, secret }: Opening, token: string | null): ApiClient {
  const options: ApiClientOptions = { controllers, caPem, token, logInAgain: 'flotilla login' }
  return new ApiClient('password' in secret ? options : { ...options, client: secret })
}

function logInFailure(method: LogInMethod, error: unknown): unknown {
  if (!(error instanceof ApiRefusal) || error.code !== 'INVALID_AUTH') return error
  const message =
    method.method === 'password'
      ? 'log-in refused: the user name or the password is wrong, or the identity is disabled or locked'
      : 'log-in refused: the certificate is not one of an enabled identity, or its policy does not allow it'
  return new CommandFailure(EXIT_FAILED, message, error)
}

/** A session that lacks a second factor may do nothing that an administrator does. */
async function completeFactors(
  client: ApiClient,
  { authQueries }: SessionDetail,
  { codeFile }: LogInOptions,
): Promise<void> {
  if (authQueries.length === 0) return
  const needsCode = authQueries.every(({ typeId }) => typeId === 'MFA')
  if (!needsCode) {
    throw new CommandFailure(
      EXIT_FAILED,
      'this identity also needs a token of an identity provider, which this command does not support; use another identity',
    )
  }
  if (codeFile === undefined && !isInteractive()) {
    throw new CommandFailure(
      EXIT_FAILED,
      'this identity needs a code of its authenticator app; pass --code-file FILE, or - for standard input',
    )
  }
  const code =
    codeFile === undefined
      ? await askLine('Code of the authenticator app: ')
      : readSecretInput(codeFile, 'the code')
  await client.ask({ method: 'POST', path: '/authenticate/mfa', body: { code }, isOnceOnly: true })
}

interface ListedController {
  readonly apiAddresses?: Readonly<Record<string, unknown>> | null
}

/**
 * Those given, then the others that the cluster has: what a later command asks when the first one
 * is away.
 */
async function everyController(
  given: readonly string[],
  caPem: string | null,
  token: string,
): Promise<string[]> {
  const client = new ApiClient({ controllers: given, caPem, token, logInAgain: 'flotilla login' })
  const listed = await client
    .ask({ method: 'GET', path: '/controllers?limit=500' })
    .then(({ data }) => data)
    .catch((error: unknown) => {
      // An identity without that permission has the controllers that it was given.
      if (error instanceof ApiRefusal) return []
      throw error
    })
  const told = managementOrigins(listed)
  return [...new Set([...given, ...told])].slice(0, contextLimits.controllersMax)
}

/** Of what is listed, whatever it is: an entry that is no controller counts for nothing. */
export function managementOrigins(listed: unknown): string[] {
  if (!Array.isArray(listed)) return []
  return (listed as readonly (ListedController | null)[]).flatMap((one) => {
    const addresses: unknown = one?.apiAddresses?.['edge-management']
    if (!Array.isArray(addresses)) return []
    return (addresses as readonly ({ readonly url?: unknown } | null)[]).flatMap((address) => {
      const url = address?.url
      const parsed = typeof url === 'string' ? URL.parse(url) : null
      return parsed?.protocol === 'https:' ? [parsed.origin] : []
    })
  })
}
