import { readFileSync } from 'node:fs'

import { formatFault, loadControllerConfig } from '../../config/load.ts'
import type { ControllerConfig } from '../../config/options.ts'
import { AdminError, askController } from './admin-client.ts'
import { CommandFailure, EXIT_FAILED, EXIT_USAGE, sentenceOf } from '../../controller/failure.ts'
import { askJson, HttpsFault } from '../terminal/https-json.ts'
import { shellWord } from '../terminal/output.ts'
import { readSecretInput } from '../terminal/secret-input.ts'

/** Which controller a cluster verb asks: one on this host, or any that is reached with a session. */
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
  | 'log-level'
  | 'set-log-level'

/** Asks a controller. @throws {CommandFailure} exit 1 with the controller's sentence, exit 2 for the options. */
export type AskCluster = (
  verb: ClusterVerb,
  params: Readonly<Record<string, unknown>>,
  timeoutMs?: number,
) => Promise<unknown>

const TIMEOUT_MS = 15_000

/** Operations of the fabric API that do what a verb does, and take its parameters as their body. */
const operations: Readonly<Record<ClusterVerb, readonly ['GET' | 'POST' | 'PUT', string] | null>> =
  {
    status: null,
    list: ['GET', 'list-members'],
    'upgrade-status': ['GET', 'upgrade-status'],
    plan: ['POST', 'plan'],
    promote: ['POST', 'promote-member'],
    demote: ['POST', 'demote-member'],
    remove: ['POST', 'remove-member'],
    replace: ['POST', 'replace-member'],
    'transfer-leadership': ['POST', 'transfer-leadership'],
    invite: ['POST', 'invite'],
    'list-tickets': ['GET', 'list-tickets'],
    'revoke-ticket': ['POST', 'revoke-ticket'],
    'recover-admin': null,
    'log-level': ['GET', '/fabric/v1/log-level'],
    'set-log-level': ['PUT', '/fabric/v1/log-level'],
  }

/** @throws {CommandFailure} exit 2 unless the options name exactly one controller. */
export function connectTo(options: ConnectionOptions): AskCluster {
  const { config, url, ca, sessionFile } = options
  if (config !== undefined && url === undefined) return askHere(config)
  if (config !== undefined || url === undefined) {
    throw usage('name a controller: --config FILE on its host, or --url URL from elsewhere')
  }
  if (ca === undefined || sessionFile === undefined) {
    throw usage('--url needs --ca FILE to verify the controller, and --session-file FILE or -')
  }
  return askThere(url, ca, sessionFile)
}

/** @throws {CommandFailure} exit 2, every fault on a line. */
export function loadConfigOrFail(path: string): ControllerConfig {
  const loaded = loadControllerConfig(path, process.env)
  if (loaded.ok) return loaded.config
  throw usage(loaded.faults.map(formatFault).join('\n'))
}

function askHere(path: string): AskCluster {
  const config = loadConfigOrFail(path)
  return async (verb, params, timeoutMs) => {
    try {
      return await askController(config.data, verb, params, timeoutMs ?? TIMEOUT_MS)
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

function askThere(url: string, ca: string, sessionFile: string): AskCluster {
  const ask = sessionAt({ url, ca, sessionFile })
  return async (verb, params, timeoutMs) => {
    const operation = operations[verb]
    if (operation === null)
      throw usage(`${verb} works on the controller's host only, with --config`)
    const [method, name] = operation
    const path = name.startsWith('/') ? name : `/fabric/v1/cluster/${name}`
    return await ask(method, path, params, timeoutMs)
  }
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

/** @throws {CommandFailure} exit 2 for an address that is none, exit 1 for a session that cannot be read. */
export function sessionAt(options: {
  readonly url: string
  readonly ca: string
  readonly sessionFile: string
}): AskPath {
  const base = baseUrl(options.url)
  const caPem = readCa(options.ca)
  const session = readSecretInput(options.sessionFile, 'the session')
  return async (method, path, body, timeoutMs) => {
    const sent = typeof body === 'string' ? { text: body } : { body }
    try {
      const answer = await askJson({
        url: `${base}${path}`,
        method,
        headers: { 'net-session': session },
        ...(method === 'GET' ? {} : sent),
        caPem,
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

/** The sentence of an answer in the API's envelope. */
export function refusalOf(status: number, body: unknown): string {
  const error = (body as { error?: unknown } | null)?.error as Refusal | undefined
  if (typeof error?.message !== 'string')
    return `unexpected response status ${status}; is it a controller?`
  if (error.code === 'UNAUTHORIZED') return 'the session is not valid; log in again'
  const { field, reason, message } = error.cause ?? {}
  const detail = typeof field === 'string' ? `${field}: ${String(reason)}` : message
  return typeof detail === 'string' && detail !== '' ? detail : error.message
}

interface Refusal {
  readonly code?: unknown
  readonly message?: unknown
  readonly cause?: {
    readonly message?: unknown
    readonly field?: unknown
    readonly reason?: unknown
  }
}

function baseUrl(text: string): string {
  const url = URL.parse(text)
  if (url?.protocol === 'https:' && url.username === '' && url.search === '') return url.origin
  throw usage(`--url: expected https://host:port, found ${JSON.stringify(text)}`)
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

function usage(message: string): CommandFailure {
  return new CommandFailure(EXIT_USAGE, message)
}
