import { printableLine } from '../../lib/text/terminal-text.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { ApiClient, parseControllerOrigin } from '../client/api-client.ts'
import {
  changeContexts,
  checkContextName,
  type NetworkContext,
  type ContextFile,
  contextLimits,
  contextsForController,
  readContexts,
  addOrReplaceContext,
} from '../client/context-file.ts'
import { ApiRefusal } from '../client/api-refusal.ts'
import {
  type CredentialOptions,
  readLogInCredential,
  chooseLogInMethod,
  readSecondFactorCode,
} from './credential.ts'
import { openSession } from './open-session.ts'
import type { LogInResult, SessionOpeningOptions } from './session-opening.ts'
import { loadTrustedCa } from './trusted-ca.ts'

export interface LogInOptions extends CredentialOptions {
  readonly ca?: string
  readonly fingerprint?: string
  readonly context?: string
  readonly json?: boolean
}

/** Opens a session, stores it in a context and selects the context. */
export async function logIn(urls: readonly string[], options: LogInOptions): Promise<void> {
  const given = [...new Set(urls.map((url) => parseControllerOrigin(url)))]
  const [first = ''] = given
  const file = readContexts()
  const name = checkContextName(options.context ?? nameFor(file, first))
  const before = Object.hasOwn(file.contexts, name) ? file.contexts[name] : undefined
  const method = await chooseLogInMethod(options, before)
  const caPem = await loadTrustedCa(first, { ...options, ...knownTrust(before, first) })
  const credential = await readLogInCredential(method, options)
  const opening: SessionOpeningOptions = {
    controllers: given,
    caPem,
    method,
    credential,
    code: () => readSecondFactorCode(options),
  }
  const opened = await openSession(opening)
  const context: NetworkContext = {
    controllers: await everyController(opening, opened),
    named: given,
    caPem,
    logIn: method,
    token: opened.token,
    renewal: opened.renewal,
  }
  changeContexts((now) => ({ ...addOrReplaceContext(now, name, context), current: name }))
  if (options.json === true) {
    printJson({ context: name, controllers: context.controllers, identity: opened.identity })
  } else {
    const identity = printableLine(opened.identity)
    printLine(`logged in to ${first} as ${identity}; current context: ${name}`)
  }
}

/**
 * The name of the context in which the user named this controller; otherwise a name made from the
 * controller's address.
 */
function nameFor(file: ContextFile, controller: string): string {
  return contextsForController(file, controller)[0]?.name ?? new URL(controller).host
}

/**
 * The CA certificates that a context stores for this controller. Only a context in which the user
 * named the controller counts; a context in which a server listed the controller does not.
 */
function knownTrust(
  before: NetworkContext | undefined,
  controller: string,
): { known?: string | null } {
  // @guard network-that-lists-another--trust
  return before?.named.includes(controller) === true ? { known: before.caPem } : {}
}

interface ListedController {
  readonly apiAddresses?: Readonly<Record<string, unknown>> | null
}

/**
 * The given controllers, followed by the other controllers of the cluster, so that later commands
 * have alternatives to the first one.
 */
async function everyController(
  { controllers: given, caPem, credential }: SessionOpeningOptions,
  { token }: LogInResult,
): Promise<string[]> {
  const { client: key } = credential
  const client = new ApiClient({
    controllers: given,
    caPem,
    token,
    ...(key === undefined ? {} : { client: key }),
    logInAgain: 'flotilla login',
  })
  const listed = await client
    .ask({ method: 'GET', path: '/controllers?limit=500' })
    .then(({ data }) => data)
    .catch((error: unknown) => {
      // If the identity may not list controllers, only the given ones are stored.
      if (error instanceof ApiRefusal) return []
      throw error
    })
  const reported = managementOrigins(listed)
  return [...new Set([...given, ...reported])].slice(0, contextLimits.controllersMax)
}

/**
 * Origins of the controllers in a response, whose content is not trusted. Entries that do not
 * describe controllers are ignored.
 */
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
