import { CommandFailure, EXIT_DENIED } from '../../controller/command-failure.ts'
import { contextTlsKey } from './client-key.ts'
import { ApiClient, type ApiClientOptions } from './api-client.ts'
import {
  changeContexts,
  type NetworkContext,
  findContext,
  logInCommandLine,
  readContexts,
  addOrReplaceContext,
} from './context-file.ts'
import { type RenewedSession, SessionTokens } from './session-tokens.ts'

export interface ContextOptions {
  readonly context?: string
  readonly json?: boolean
}

/**
 * A client with the session of a context.
 * @throws {CommandFailure} exit 3 when no context is named or current, or when the context has no
 * session; exit 4 when it does not exist.
 */
export function openContextClient(options: Pick<ContextOptions, 'context'>): ApiClient {
  const { name, context } = findContext(readContexts(), options.context)
  requireLoggedIn(name, context)
  return createContextClient(name, context)
}

/**
 * A client that sends requests to the controllers of a context, with the context's session if it
 * has one.
 */
export function createContextClient(
  name: string,
  context: NetworkContext,
  options: Pick<ApiClientOptions, 'isImpatient'> = {},
): ApiClient {
  return new ApiClient({
    controllers: context.controllers,
    caPem: context.caPem,
    token: context.token,
    ...contextSession(name, context),
    ...contextTlsKey(context),
    ...options,
    logInAgain: logInCommandLine(name, context),
    onMoved: (controller) => askFirst(name, controller),
  })
}

/** The OIDC session of a context, whose token is renewed; empty if it has no such session. */
export function contextSession(
  name: string,
  context: NetworkContext,
): { readonly session?: RenewedSession } {
  if (context.token === null || !context.renewal) return {}
  return { session: new SessionTokens(name, context, logInCommandLine(name, context)) }
}

/**
 * Stores the controller that responded as the first one of the context, so that the next command
 * does not begin with an unreachable controller.
 */
function askFirst(name: string, controller: string): void {
  changeContexts((file) => {
    const context = file.contexts[name]
    if (context?.controllers.includes(controller) !== true) return file
    const others = context.controllers.filter((one) => one !== controller)
    return addOrReplaceContext(file, name, { ...context, controllers: [controller, ...others] })
  })
}

/** @throws {CommandFailure} exit 3 when the context has no session. */
export function requireLoggedIn(name: string, context: NetworkContext): void {
  if (context.token !== null) return
  throw new CommandFailure(
    EXIT_DENIED,
    `not logged in to ${name}; log in with: ${logInCommandLine(name, context)}`,
  )
}
