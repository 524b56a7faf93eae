import { readTextFile } from '../terminal/text-file.ts'
import { loadControllerConfig } from '../../config/controller/load.ts'
import { formatConfigFault } from '../../config/engine/fault.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import {
  CommandFailure,
  EXIT_FAILED,
  EXIT_USAGE,
  usageFailure,
} from '../../controller/command-failure.ts'
import { findRunningPid } from '../../controller/admin/pid-file.ts'
import { quoteShellWord } from '../terminal/output.ts'
import { readSecretInput } from '../terminal/secret-input.ts'
import { startCommand } from '../terminal/start-command.ts'
import { AdminSocketError, type AdminSocketRequest, sendToAdminSocket } from './admin-socket.ts'
import { unknownShape, validateResponse, type ShapeCheck } from './response-shape.ts'
import { ApiClient, parseControllerOrigin } from './api-client.ts'
import {
  changePlanShape,
  clusterStatusShape,
  newJoinTicketShape,
  listedMembersShape,
  logLevelShape,
  recoveredAdminShape,
  logTimeResetShape,
  scheduledBackupsShape,
  ticketsShape,
  upgradeStatusShape,
} from './cluster-shapes.ts'
import { requireLoggedIn, createContextClient } from './context-client.ts'
import {
  type NetworkContext,
  contextsForController,
  findContext,
  readContexts,
} from './context-file.ts'
import { ApiRefusal } from './api-refusal.ts'
import { errorMessage } from '../../lib/error-code.ts'

/**
 * Options of a cluster command that select the controller: the one on this host, or one that a
 * session can reach.
 */
export interface ConnectionOptions {
  readonly config?: string
  readonly context?: string
  readonly url?: string
  readonly ca?: string
  readonly sessionFile?: string
}

export type ClusterOperationName =
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
 * Sends a request to a controller.
 * @throws {CommandFailure} with the error message of the controller, or exit 2 for invalid options.
 */
export type SendClusterRequest = (
  operation: ClusterOperationName,
  params: Readonly<Record<string, unknown>>,
  timeoutMs?: number,
) => Promise<unknown>

/** HTTP method and path of each operation; a relative path is below `/fabric/v1/cluster`. */
const operations: Readonly<
  Record<ClusterOperationName, readonly ['GET' | 'POST' | 'PUT', string]>
> = {
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

/** Shapes of the responses. The response to a membership change is empty or contains a plan. */
const shapes: Readonly<Record<ClusterOperationName, ShapeCheck<unknown>>> = {
  status: clusterStatusShape,
  list: listedMembersShape,
  'upgrade-status': upgradeStatusShape,
  debug: unknownShape,
  backups: scheduledBackupsShape,
  plan: changePlanShape,
  promote: unknownShape,
  demote: unknownShape,
  remove: unknownShape,
  replace: unknownShape,
  'transfer-leadership': unknownShape,
  invite: newJoinTicketShape,
  'list-tickets': ticketsShape,
  'revoke-ticket': unknownShape,
  'recover-admin': recoveredAdminShape,
  'reset-log-time': logTimeResetShape,
  'log-level': logLevelShape,
  'set-log-level': logLevelShape,
}

/** Operations that concern one controller, so that no other controller may respond. */
const ofOneController: ReadonlySet<ClusterOperationName> = new Set([
  'debug',
  'backups',
  'log-level',
  'set-log-level',
])

/** The API request of a cluster operation. */
export function clusterOperationRequest(
  operation: ClusterOperationName,
  body?: Readonly<Record<string, unknown>>,
  timeoutMs?: number,
): AdminSocketRequest {
  const [method, name] = operations[operation]
  return {
    method,
    isOfAny: !ofOneController.has(operation),
    path: name.startsWith('/') ? name : `/fabric/v1/cluster/${name}`,
    ...(body === undefined ? {} : { body }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  }
}

/** @throws {CommandFailure} for the same reasons as {@link createOperationCaller}. */
export function openClusterConnection(options: ConnectionOptions): SendClusterRequest {
  const ask = createOperationCaller(options)
  const controller = options.url ?? options.config ?? options.context ?? 'the controller'
  // @guard answers-of-a-hostile-server--cluster
  return async (operation, params, timeoutMs) =>
    validateResponse(
      controller,
      shapes[operation],
      await ask(clusterOperationRequest(operation, params, timeoutMs)),
    )
}

/**
 * Calls an operation of a controller.
 * @throws {CommandFailure} exit 1 with the controller's error message.
 */
type AskOperation = (request: AdminSocketRequest) => Promise<unknown>

/**
 * @throws {CommandFailure} exit 2 if the options contradict each other, or name no controller and
 * no context is current; exit 3 if the context has no session; exit 4 if it does not exist.
 */
export function createOperationCaller(options: ConnectionOptions): AskOperation {
  const { config, context, url, ca, sessionFile } = options
  const named = [config, context, url].filter((one) => one !== undefined)
  if (named.length > 1) {
    throw usageFailure('--config, --context and --url exclude each other; name one of them')
  }
  if (config !== undefined) return askAtSocket(config)
  if (url === undefined) {
    if (ca !== undefined || sessionFile !== undefined) {
      throw usageFailure('--ca and --session-file need --url URL')
    }
    return askInContext(context)
  }
  return askThrough(parseControllerOrigin(url, '--url: '), ca, sessionFile)
}

/**
 * Loads the configuration.
 * @throws {CommandFailure} exit 2, one line for each fault.
 */
export function loadConfigOrFail(path: string): ControllerConfig {
  const loaded = loadControllerConfig(path, process.env)
  if (loaded.ok) return loaded.config
  throw usageFailure(loaded.faults.map(formatConfigFault).join('\n'))
}

/**
 * Sends requests to the admin socket.
 * @throws {CommandFailure} exit 2 for a faulty configuration.
 */
function askAtSocket(path: string): AskOperation {
  const config = loadConfigOrFail(path)
  return async (request) => {
    try {
      return await sendToAdminSocket(config.data, request)
    } catch (error) {
      if (!(error instanceof AdminSocketError)) throw error
      const said = error.code === 'NOT_RUNNING' ? notAnswering(path, config) : error.message
      throw new CommandFailure(EXIT_FAILED, `${config.id}: ${said}`, error)
    }
  }
}

/**
 * Message when no process listens on the admin socket. A controller may run nevertheless: at its
 * start, it locks its data folder, votes and may lead before it opens its admin socket.
 */
function notAnswering(path: string, { data }: ControllerConfig): string {
  const pid = findRunningPid(path, data)
  if (pid !== null) return `the controller (process ${pid}) is starting; ask again in a moment`
  return `no controller is running on ${data}; start it with: ${startCommand('controller', path)}`
}

/**
 * Sends requests with the session of a context.
 * @param wanted name of the context; undefined: the current one.
 * @throws {CommandFailure} exit 2 when no context is named or current.
 */
function askInContext(wanted: string | undefined): AskOperation {
  const contexts = readContexts()
  if (wanted === undefined && contexts.current === null) {
    throw usageFailure(
      'name a controller: --config FILE on its host, or --url URL from elsewhere; or log in with flotilla login https://HOST:PORT',
    )
  }
  const { name, context } = findContext(contexts, wanted)
  requireLoggedIn(name, context)
  return askWith(createContextClient(name, context, { isImpatient: true }), null)
}

/**
 * Sends requests to the controller at `base`, with the session from the given files, or with the
 * session that `flotilla login` stored for this controller. In the second case, any controller of
 * the context may respond to a request that does not concern one controller.
 */
function askThrough(
  base: string,
  ca: string | undefined,
  sessionFile: string | undefined,
): AskOperation {
  if (ca !== undefined && sessionFile !== undefined) {
    return askWith(createSessionFileClient({ url: base, ca, sessionFile }), base)
  }
  const known = ca === undefined && sessionFile === undefined ? contextFor(base) : null
  if (known === null) {
    throw usageFailure(
      `--url needs a session: log in with flotilla login ${base}, or pass --ca FILE and --session-file FILE`,
    )
  }
  const { name, context } = known
  const others = context.controllers.filter((one) => one !== base)
  const controllers = [base, ...others]
  return askWith(
    createContextClient(name, { ...context, controllers }, { isImpatient: true }),
    base,
  )
}

/**
 * The context with a session for the controller; null when no context names the controller.
 * @throws {CommandFailure} exit 3 when no context that names it has a session.
 */
function contextFor(
  base: string,
): { readonly name: string; readonly context: NetworkContext } | null {
  const known = contextsForController(readContexts(), base)
  const found = known.find(({ context }) => context.token !== null) ?? known[0]
  if (found === undefined) return null
  requireLoggedIn(found.name, found.context)
  return found
}

/**
 * A client that sends requests to one controller with the session from a file.
 * @throws {CommandFailure} exit 2 for an invalid address or an unreadable CA file, exit 1 for an
 * unreadable session.
 */
export function createSessionFileClient({ url, ca, sessionFile }: SessionFiles): ApiClient {
  const controller = parseControllerOrigin(url, '--url: ')
  return new ApiClient({
    controllers: [controller],
    caPem: readCa(ca),
    token: readSecretInput(sessionFile, 'the session'),
    logInAgain: `flotilla login ${quoteShellWord(controller)}`,
    isImpatient: true,
  })
}

interface SessionFiles {
  readonly url: string
  readonly ca: string
  readonly sessionFile: string
}

/** @param origin origin of the controller that the options name; null: the options name none. */
function askWith(client: ApiClient, origin: string | null): AskOperation {
  return async ({ method, path, body, timeoutMs, isOfAny }) => {
    if (isOfAny !== true && origin === null) {
      throw usageFailure(
        'this command is about one controller; name it: --url URL, or --config FILE on its host',
      )
    }
    // Requests other than GET are sent only once, because cluster operations do not recognize a
    // repeated request.
    const isOnceOnly = method !== 'GET'
    const request = {
      api: '',
      method,
      path,
      body,
      isOnceOnly,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(isOfAny === true || origin === null ? {} : { origin }),
    }
    try {
      return (await client.ask(request)).data
    } catch (error) {
      if (!(error instanceof ApiRefusal)) throw error
      throw new CommandFailure(EXIT_FAILED, `${client.controller}: ${error.message}`, error)
    }
  }
}

function readCa(path: string): string {
  try {
    return readTextFile(path)
  } catch (error) {
    throw new CommandFailure(
      EXIT_USAGE,
      `--ca: ${path} cannot be read (${errorMessage(error)})`,
      error,
    )
  }
}
