import { readFileSync } from 'node:fs'

import { loadControllerConfig } from '../../config/controller/load.ts'
import { formatFault } from '../../config/engine/fault.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { AdminError, type AdminRequest, askController } from './admin-socket.ts'
import { refusalOf } from '../cluster/refusal.ts'
import { logInCommand, readContexts } from './context-file.ts'
import {
  CommandFailure,
  EXIT_FAILED,
  EXIT_USAGE,
  sentenceOf,
  usageFailure,
} from '../../controller/failure.ts'
import { askJson, HttpsFault } from './https.ts'
import { schemeHint } from '../terminal/scheme-hint.ts'
import { shellWord } from '../terminal/output.ts'
import { readSecretInput } from '../terminal/secret-input.ts'

/**
 * Which controller a cluster verb asks: one on this host, or any that is reached with a session.
 */
export interface ConnectionOptions {
  readonly config?: string
  readonly url?: string
  readonly ca?: string
  readonly sessionFile?: string
}

export type ClusterVerb =
  | 'status'
  | 'list'
  | 'upgrade-status'
  | 'debug'
  | 'backups'
  | 'plan'
  | 'promote'
  | 'demote'
  | 'remove'
  | 'replace'
  | 'transfer-leadership'
  | 'invite'
  | 'list-tickets'
  | 'revoke-ticket'
  | 'recover-admin'
  | 'reset-log-time'
  | 'log-level'
  | 'set-log-level'

/**
 * Asks a controller.
 * @throws {CommandFailure} exit 1 with the controller's sentence, exit 2 for the options.
 */
export type AskCluster = (
  verb: ClusterVerb,
  params: Readonly<Record<string, unknown>>,
  timeoutMs?: number,
) => Promise<unknown>

const TIMEOUT_MS = 15_000

/** The operations of the fabric API that verbs ask for, with their parameters as the body. */
const operations: Readonly<Record<ClusterVerb, readonly ['GET' | 'POST' | 'PUT', string]>> = {
  status: ['GET', 'status'],
  list: ['GET', 'list-members'],
  'upgrade-status': ['GET', 'upgrade-status'],
  debug: ['GET', 'debug'],
  backups: ['GET', 'backups'],
  plan: ['POST', 'plan'],
  promote: ['POST', 'promote-member'],
  demote: ['POST', 'demote-member'],
  remove: ['POST', 'remove-member'],
  replace: ['POST', 'replace-member'],
  'transfer-leadership': ['POST', 'transfer-leadership'],
  invite: ['POST', 'invite'],
  'list-tickets': ['GET', 'list-tickets'],
  'revoke-ticket': ['POST', 'revoke-ticket'],
  'recover-admin': ['POST', 'recover-admin'],
  'reset-log-time': ['POST', 'reset-log-time'],
  'log-level': ['GET', '/fabric/v1/log-level'],
  'set-log-level': ['PUT', '/fabric/v1/log-level'],
}

/** What a verb asks a controller for. */
export function requestOf(
  verb: ClusterVerb,
  body?: Readonly<Record<string, unknown>>,
  timeoutMs?: number,
): AdminRequest {
  const [method, name] = operations[verb]
  return {
    method,
    path: name.startsWith('/') ? name : `/fabric/v1/cluster/${name}`,
    ...(body === undefined ? {} : { body }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  }
}

/** @throws {CommandFailure} exit 2 unless the options name exactly one controller. */
export function connectTo(options: ConnectionOptions): AskCluster {
  const ask = askAt(options)
  return (verb, params, timeoutMs) => ask(requestOf(verb, params, timeoutMs))
}

/**
 * Asks a controller for an operation.
 * @throws {CommandFailure} exit 1 with the controller's sentence.
 */
export type AskOperation = (request: AdminRequest) => Promise<unknown>

/** @throws {CommandFailure} exit 2 unless the options name exactly one controller. */
export function askAt({ config, url, ca, sessionFile }: ConnectionOptions): AskOperation {
  if (config !== undefined && url === undefined) return askAtSocket(config)
  if (config !== undefined || url === undefined) {
    throw usageFailure('name a controller: --config FILE on its host, or --url URL from elsewhere')
  }
  const ask = askWith(baseUrl(url), credentialsFor(url, ca, sessionFile))
  return ({ method, path, body, timeoutMs }) => ask(method, path, body, timeoutMs)
}

/** @throws {CommandFailure} exit 2, every fault on a line. */
export function loadConfigOrFail(path: string): ControllerConfig {
  const loaded = loadControllerConfig(path, process.env)
  if (loaded.ok) return loaded.config
  throw usageFailure(loaded.faults.map(formatFault).join('\n'))
}

/** @throws {CommandFailure} exit 2 for the configuration. */
function askAtSocket(path: string): AskOperation {
  const config = loadConfigOrFail(path)
  return async (request) => {
    try {
      return await askController(config.data, request)
    } catch (error) {
      if (!(error instanceof AdminError)) throw error
      const hint =
        error.code === 'NOT_RUNNING'
          ? `; start it with: flotilla controller run ${shellWord(path)}`
          : ''
      throw new CommandFailure(EXIT_FAILED, `${config.id}: ${error.message}${hint}`, error)
    }
  }
}

interface Credentials {
  /** null: those that this host trusts. */
  readonly caPem: string | null
  readonly session: string
}

/** Files that are named, or else what `flotilla login` has kept for that controller. */
function credentialsFor(
  url: string,
  ca: string | undefined,
  sessionFile: string | undefined,
): Credentials {
  if (ca !== undefined && sessionFile !== undefined) return readCredentials(ca, sessionFile)
  const found = ca === undefined && sessionFile === undefined ? contextFor(baseUrl(url)) : null
  if (found !== null) return found
  throw usageFailure(
    `--url needs a session: log in with flotilla login ${url}, or pass --ca FILE and --session-file FILE`,
  )
}

/**
 * @returns null when no context knows that controller.
 * @throws {CommandFailure} exit 1 when nobody is logged in there.
 */
function contextFor(base: string): Credentials | null {
  const known = Object.entries(readContexts().contexts).filter(([, { controllers }]) =>
    controllers.includes(base),
  )
  const [name, context] = known.find(([, { token }]) => token !== null) ?? known[0] ?? []
  if (name === undefined || context === undefined) return null
  const { caPem, token } = context
  if (token !== null) return { caPem, session: token }
  throw new CommandFailure(
    EXIT_FAILED,
    `not logged in to ${name}; log in with: ${logInCommand(name, context)}`,
  )
}

function readCredentials(ca: string, sessionFile: string): Credentials {
  return { caPem: readCa(ca), session: readSecretInput(sessionFile, 'the session') }
}

/**
 * Asks with a session. A text is sent as it is, anything else as JSON, and neither with a GET.
 * @throws {CommandFailure} exit 1 with the controller's sentence.
 */
export type AskPath = (
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: unknown,
  timeoutMs?: number,
) => Promise<unknown>

/**
 * @throws {CommandFailure} exit 2 for an address that is none, exit 1 for a session that cannot be
 * read.
 */
export function sessionAt(options: {
  readonly url: string
  readonly ca: string
  readonly sessionFile: string
}): AskPath {
  return askWith(baseUrl(options.url), readCredentials(options.ca, options.sessionFile))
}

function askWith(base: string, { caPem, session }: Credentials): AskPath {
  return async (method, path, body, timeoutMs) => {
    const sent = typeof body === 'string' ? { text: body } : { body }
    try {
      const answer = await askJson({
        url: `${base}${path}`,
        method,
        headers: { 'net-session': session },
        ...(method === 'GET' ? {} : sent),
        ...(caPem === null ? {} : { caPem }),
        timeoutMs: timeoutMs ?? TIMEOUT_MS,
      })
      if (answer.status >= 200 && answer.status < 300) {
        return (answer.body as { data?: unknown } | null)?.data ?? null
      }
      throw new CommandFailure(EXIT_FAILED, `${base}: ${refusalOf(answer.status, answer.body)}`)
    } catch (error) {
      if (!(error instanceof HttpsFault)) throw error
      throw new CommandFailure(EXIT_FAILED, `${base}: it ${error.message}`, error)
    }
  }
}

function baseUrl(text: string): string {
  const url = URL.parse(text)
  if (url?.protocol === 'https:' && url.username === '' && url.search === '') return url.origin
  throw usageFailure(
    `--url: expected https://HOST:PORT, found ${JSON.stringify(text)}${schemeHint(text)}`,
  )
}

function readCa(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new CommandFailure(
      EXIT_USAGE,
      `--ca: ${path} cannot be read (${sentenceOf(error)})`,
      error,
    )
  }
}
