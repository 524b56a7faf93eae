import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { HttpsFault } from '../client/https-request.ts'
import { formatTable, printJson, printLine, printNote } from '../terminal/output.ts'
import { contextTlsKey } from '../client/client-key.ts'
import { createContextClient, type ContextOptions } from '../client/context-client.ts'
import {
  changeContexts,
  type NetworkContext,
  findContext,
  type LogInMethod,
  readContexts,
  addOrReplaceContext,
} from '../client/context-file.ts'

/**
 * Ends the session of a context if possible, removes its token in any case, and keeps the context.
 * @throws {CommandFailure} exit 1 if the session could not be ended.
 */
export async function logOut(options: ContextOptions): Promise<void> {
  const { name, context } = findContext(readContexts(), options.context)
  const fault = await endSession(name, context)
  forgetToken(name)
  if (options.json === true) printJson({ context: name, isEnded: fault === null })
  else printLine(`logged out of ${name}`)
  if (fault !== null) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${name}: token removed, but its session could not be ended (${fault}); it expires when unused`,
    )
  }
}

/** @returns why the session may still exist; null when it has ended. */
async function endSession(name: string, context: NetworkContext): Promise<string | null> {
  if (context.token === null) return null
  try {
    if (context.renewal) return await revoke(context, context.renewal.refreshToken)
    await createContextClient(name, context).ask({ method: 'DELETE', path: '/current-api-session' })
    return null
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error
    return 'code' in error && error.code === 'NO_SESSION' ? null : error.message
  }
}

/**
 * Ends an OIDC session, even if its access token has expired.
 * @returns why no controller ended the session; null when it has ended.
 */
async function revoke(context: NetworkContext, refreshToken: string): Promise<string | null> {
  const { OidcProviderClient, OidcProviderRefusal } =
    await import('../client/oidc-provider-client.ts')
  const peer = { caPem: context.caPem, ...contextTlsKey(context) }
  const faults: string[] = []
  for (const controller of context.controllers) {
    try {
      await (await OidcProviderClient.discover(controller, peer)).revoke(refreshToken)
      return null
    } catch (error) {
      if (error instanceof HttpsFault) faults.push(`${controller} ${error.message}`)
      else if (error instanceof OidcProviderRefusal) faults.push(error.message)
      else throw error
    }
  }
  return faults.join('; ')
}

function forgetToken(name: string): void {
  changeContexts((file) => {
    const context = file.contexts[name]
    return context === undefined
      ? file
      : addOrReplaceContext(file, name, { ...context, token: null, renewal: null })
  })
}

/** Prints the contexts, but never a token. */
export function listContexts(options: ContextOptions): void {
  const { current, contexts } = readContexts()
  const listed = Object.entries(contexts)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { controllers, logIn, token }]) => ({
      name,
      isCurrent: name === current,
      user: userOf(logIn),
      isLoggedIn: token !== null,
      controllers,
    }))
  if (options.json === true) {
    printJson(listed)
    return
  }
  const rows = listed.map(({ name, isCurrent, user, isLoggedIn, controllers }) => [
    isCurrent ? '*' : '',
    name,
    user,
    isLoggedIn ? 'yes' : 'no',
    controllers.join(' '),
  ])
  printLine(formatTable(['in use', 'name', 'log-in', 'session', 'controllers'], rows))
}

function userOf(logIn: LogInMethod): string {
  switch (logIn.method) {
    case 'password':
      return logIn.username
    case 'cert':
      return logIn.cert
    case 'ext-jwt':
      return logIn.jwtFile
    case 'browser':
    case 'device':
      return logIn.method
  }
}

/** Selects the context for later commands. */
export function useContext(asked: string, options: ContextOptions): void {
  changeContexts((file) => ({ ...file, current: findContext(file, asked).name }))
  if (options.json === true) printJson({ context: asked })
  else printLine(`current context: ${asked}`)
}

/** Removes a context, after ending its session if possible. */
export async function removeContext(asked: string, options: ContextOptions): Promise<void> {
  const { name, context } = findContext(readContexts(), asked)
  const fault = await endSession(name, context)
  changeContexts(({ current, contexts: { [name]: _removed, ...contexts } }) => ({
    current: current === name ? null : current,
    contexts,
  }))
  if (options.json === true) printJson({ context: name, isEnded: fault === null })
  else printLine(`removed context ${name}`)
  if (fault === null) return
  printNote(`flotilla: its session could not be ended (${fault}); it expires when unused`)
}
