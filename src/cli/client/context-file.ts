import { statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

import {
  CommandFailure,
  EXIT_DENIED,
  EXIT_FAILED,
  EXIT_NOT_FOUND,
  EXIT_USAGE,
} from '../../controller/command-failure.ts'
import { readSecretFile, SecretFileError, writeSecretFile } from '../../pki/secret-file.ts'
import { makeFolder } from '../terminal/make-folder.ts'
import { quoteShellWord } from '../terminal/output.ts'
import { acquireFileLock } from './file-lock.ts'

export const contextLimits = {
  /** Maximum contexts in the file; a command that would add a further context fails. */
  contextsMax: 64,
  /** Maximum controllers that a log-in stores in one context; further controllers are ignored. */
  controllersMax: 16,
  /** Maximum bytes of the context file; a command refuses to read a larger file. */
  fileBytesMax: 4 * 1024 * 1024,
  /** Time that a command waits to change the file while another command is changing it. */
  lockWaitMs: 5000,
  /** Age above which a command removes another command's lock on the file. */
  lockStaleMs: 10_000,
} as const

/**
 * Method with which a session was opened. The next log-in uses the same method, unless its options
 * name another one.
 */
export type LogInMethod =
  | { readonly method: 'password'; readonly username: string }
  | { readonly method: 'cert'; readonly cert: string; readonly key: string }
  /** Log-in with a token from an identity provider; `jwtFile` contains the token. */
  | { readonly method: 'ext-jwt'; readonly jwtFile: string }
  | { readonly method: 'browser' }
  | { readonly method: 'device' }

/** One network that the user administers. */
export interface NetworkContext {
  /**
   * Base URLs of the controllers, including those that the cluster listed; a command tries the
   * first one first.
   */
  readonly controllers: readonly string[]
  /**
   * Controllers that the user named at log-in. Only these controllers select the context and its
   * CA: the other addresses came from a server, and a server must not decide which CA this host
   * trusts for other addresses.
   */
  readonly named: readonly string[]
  /**
   * PEM of the only CA certificates that are trusted for the controllers; null: the CA certificates
   * of this host.
   */
  readonly caPem: string | null
  readonly logIn: LogInMethod
  /** Session token, which is secret; null after a log-out. */
  readonly token: string | null
  /** Data for renewing an OIDC session, whose token expires; absent for other sessions. */
  readonly renewal?: SessionRenewal | null
}

/** Data for renewing the token of an OIDC session. */
export interface SessionRenewal {
  /** A secret. */
  readonly refreshToken: string
  /** Expiry of the current token by the clock of this host, UTC ms. */
  readonly expiresAtMs: number
}

export interface ContextFile {
  readonly current: string | null
  readonly contexts: Readonly<Record<string, NetworkContext>>
}

const NAME = /^[A-Za-z0-9[][A-Za-z0-9._:\]-]{0,63}$/
const nothing: ContextFile = { current: null, contexts: {} }

/** `$XDG_CONFIG_HOME/flotilla/contexts.json`. */
export function contextFilePath(env: NodeJS.ProcessEnv = process.env): string {
  const base = env['XDG_CONFIG_HOME']
  // A relative path is ignored, as the XDG specification requires.
  const folder = base?.startsWith('/') === true ? base : join(homedir(), '.config')
  return join(folder, 'flotilla', 'contexts.json')
}

/** @throws {CommandFailure} exit 2 for an invalid context name. */
export function checkContextName(name: string): string {
  if (NAME.test(name)) return name
  throw new CommandFailure(
    EXIT_USAGE,
    `--context: expected up to 64 letters, digits and . _ : -, found ${JSON.stringify(name)}`,
  )
}

/** @throws {CommandFailure} exit 1 when the file exists but cannot be used. */
export function readContexts(path = contextFilePath()): ContextFile {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return nothing
  try {
    return parsedFile(path, readSecretFile(path, contextLimits.fileBytesMax).text)
  } catch (error) {
    if (!(error instanceof SecretFileError)) throw error
    throw new CommandFailure(EXIT_FAILED, error.message, error)
  }
}

/**
 * Changes the file atomically, even if another command changes it at the same time.
 * @throws {CommandFailure} and the errors of the file system.
 */
export function changeContexts(
  change: (file: ContextFile) => ContextFile,
  path = contextFilePath(),
): void {
  makeFolder(dirname(path), 0o700)
  const { lockWaitMs: waitMs, lockStaleMs: staleMs } = contextLimits
  const release = acquireFileLock(`${path}.lock`, { waitMs, staleMs })
  try {
    const file = change(readContexts(path))
    if (Object.keys(file.contexts).length > contextLimits.contextsMax) {
      throw new CommandFailure(
        EXIT_FAILED,
        `${path} has the maximum of ${contextLimits.contextsMax} contexts; remove one with: flotilla context remove NAME`,
      )
    }
    writeSecretFile(path, `${JSON.stringify(file, null, 2)}\n`)
  } finally {
    release()
  }
}

export function addOrReplaceContext(
  file: ContextFile,
  name: string,
  context: NetworkContext,
): ContextFile {
  return { ...file, contexts: { ...file.contexts, [name]: context } }
}

/**
 * @throws {CommandFailure} exit 4 when no context has that name, 3 when no name is given and no
 * context is current.
 */
export function findContext(
  file: ContextFile,
  asked: string | undefined,
): { readonly name: string; readonly context: NetworkContext } {
  const name = asked ?? file.current
  if (name === null) {
    throw new CommandFailure(
      EXIT_DENIED,
      'no current context; log in with: flotilla login https://HOST:PORT --user NAME',
    )
  }
  const context = Object.hasOwn(file.contexts, name) ? file.contexts[name] : undefined
  if (context !== undefined) return { name, context }
  const known = Object.keys(file.contexts).sort().join(', ')
  throw new CommandFailure(
    EXIT_NOT_FOUND,
    `unknown context ${name}; ${known === '' ? 'create one with: flotilla login https://HOST:PORT --user NAME' : `known contexts: ${known}`}`,
  )
}

/** The contexts for whose log-in the user named this controller. */
export function contextsForController(
  { contexts }: ContextFile,
  controller: string,
): { readonly name: string; readonly context: NetworkContext }[] {
  // @guard network-that-lists-another--context
  return Object.entries(contexts)
    .filter(([, { named }]) => named.includes(controller))
    .map(([name, context]) => ({ name, context }))
}

/** The command that logs in again in this context. */
export function logInCommandLine(
  name: string,
  { controllers, named, logIn }: NetworkContext,
): string {
  const by = flagsOf(logIn)
  // @guard network-that-lists-another--command
  const url = named[0] ?? controllers[0] ?? 'URL'
  const words = ['flotilla', 'login', url, ...by, '--context', name]
  return words.map(quoteShellWord).join(' ')
}

function flagsOf(logIn: LogInMethod): string[] {
  switch (logIn.method) {
    case 'password':
      return ['--user', logIn.username]
    case 'cert':
      return ['--cert', logIn.cert, '--key', logIn.key]
    case 'ext-jwt':
      return ['--jwt-file', logIn.jwtFile]
    case 'browser':
      return ['--browser']
    case 'device':
      return ['--device']
  }
}

function parsedFile(path: string, text: string): ContextFile {
  try {
    const file = JSON.parse(text) as Partial<ContextFile> | null
    const { current = null, contexts } = file ?? {}
    const isFile = typeof contexts === 'object' && Object.values(contexts).every(isContext)
    if (isFile) return { current, contexts: withNamed(contexts) }
  } catch {
    // The parser's message is not shown, because it could contain a token.
  }
  throw new CommandFailure(
    EXIT_FAILED,
    `${path} is not a file of contexts; move it away and log in again`,
  )
}

type StoredContext = Omit<NetworkContext, 'named'> & Partial<Pick<NetworkContext, 'named'>>

/**
 * Adds the controllers that the user named at log-in, which a file of version 0.1.0 does not
 * contain. In such a file, the name of a context is the address of its first controller, unless the
 * user chose another name.
 */
function withNamed(
  contexts: Readonly<Record<string, StoredContext>>,
): Readonly<Record<string, NetworkContext>> {
  const entries = Object.entries(contexts).map(([name, context]) => {
    const { controllers } = context
    // @guard network-that-lists-another--earlier
    const named = context.named ?? controllers.filter((one) => URL.parse(one)?.host === name)
    return [name, { ...context, named }] as const
  })
  return Object.fromEntries(entries)
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

function isContext(value: unknown): value is StoredContext {
  const context = value as Partial<NetworkContext> | null
  return (
    typeof context === 'object' &&
    context !== null &&
    isTexts(context.controllers) &&
    (context.named === undefined || isTexts(context.named)) &&
    typeof context.logIn === 'object' &&
    (context.token === null || typeof context.token === 'string') &&
    isRenewal(context.renewal)
  )
}

function isRenewal(value: Partial<SessionRenewal> | null | undefined): boolean {
  if (value === null || value === undefined) return true
  return typeof value.refreshToken === 'string' && typeof value.expiresAtMs === 'number'
}
