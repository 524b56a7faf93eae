import { commandTimeouts } from '../../client/timeouts.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { HttpsFault } from '../client/https-request.ts'
import type { GrantedTokens, OidcProviderClient } from '../client/oidc-provider-client.ts'
import { openRestSession } from './rest-session.ts'
import {
  createLogInClient,
  type SessionOpeningOptions,
  type LogInResult,
} from './session-opening.ts'

/**
 * Logs in by OpenID Connect if the cluster announces it and offers it at the given addresses;
 * otherwise opens a session of the REST API.
 * @throws {CommandFailure} also for a log-in with a browser or another device without OpenID
 * Connect.
 */
export async function openSession(opening: SessionOpeningOptions): Promise<LogInResult> {
  const byProvider = (await isOidcAnnounced(opening)) ? await openByProvider(opening) : null
  if (byProvider !== null) return byProvider
  const { method } = opening.method
  if (method !== 'browser' && method !== 'device') return await openRestSession(opening)
  throw new CommandFailure(
    EXIT_FAILED,
    `--${method} needs OpenID Connect, which this cluster does not offer at that address; log in with --user, or with --cert and --key`,
  )
}

async function isOidcAnnounced(opening: SessionOpeningOptions): Promise<boolean> {
  const { data } = await createLogInClient(opening, null).ask({ method: 'GET', path: '/version' })
  const { capabilities } = (data ?? {}) as { readonly capabilities?: unknown }
  return Array.isArray(capabilities) && capabilities.includes('OIDC_AUTH')
}

/**
 * Logs in through the first controller that responds. If the controllers cannot accept a log-in at
 * the moment, for example without a leader, tries again for `patienceMs`, unless the user has
 * already logged in with a browser. A log-in that is interrupted by a lost connection starts again
 * at another controller, because a controller stores a log-in in the cluster only when its code is
 * redeemed.
 * @returns null as soon as a controller is not an OpenID provider at its address.
 */
async function openByProvider(opening: SessionOpeningOptions): Promise<LogInResult | null> {
  const {
    NOT_AN_OIDC_PROVIDER,
    OidcProviderClient: ofController,
    OidcProviderRefusal,
  } = await import('../client/oidc-provider-client.ts')
  const { controllers, caPem, credential } = opening
  const { client } = credential
  const peer = client === undefined ? { caPem } : { caPem, client }
  const endMs = performance.now() + commandTimeouts.patienceMs
  for (;;) {
    let fault: CommandFailure | null = null
    for (const controller of controllers) {
      try {
        const provider = await ofController.discover(controller, peer)
        return sessionOf(await flowOf(opening, provider), opening)
      } catch (error) {
        if (error instanceof HttpsFault) {
          fault ??= new CommandFailure(EXIT_FAILED, `${controller}: it ${error.message}`, error)
        } else if (!(error instanceof OidcProviderRefusal)) throw error
        else if (error.code === NOT_AN_OIDC_PROVIDER) return null
        else if (error.isPassing) fault = error
        else throw error
      }
    }
    if (fault === null) throw new Error('no controller was named')
    const isWorthwhile = fault instanceof OidcProviderRefusal && performance.now() < endMs
    if (!isWorthwhile) throw fault
    await new Promise((resolve) => setTimeout(resolve, commandTimeouts.pauseMs))
  }
}

async function flowOf(
  opening: SessionOpeningOptions,
  provider: OidcProviderClient,
): Promise<GrantedTokens> {
  switch (opening.method.method) {
    case 'browser': {
      const { logInByBrowser } = await import('./browser.ts')
      return await logInByBrowser(provider)
    }
    case 'device': {
      const { logInByDevice } = await import('./device.ts')
      return await logInByDevice(provider, nextOf(opening, provider))
    }
    default: {
      const { logInByCodeFlow } = await import('./code-flow.ts')
      return await logInByCodeFlow(provider, opening)
    }
  }
}

/**
 * Returns a function that yields the given controllers one after the other, starting after the
 * controller `first`.
 */
function nextOf(
  { controllers, caPem }: SessionOpeningOptions,
  first: OidcProviderClient,
): () => Promise<OidcProviderClient> {
  let at = controllers.indexOf(first.controller)
  return async () => {
    const { OidcProviderClient: ofController } = await import('../client/oidc-provider-client.ts')
    at = (at + 1) % controllers.length
    return await ofController.discover(controllers[at] ?? first.controller, { caPem })
  }
}

function sessionOf(
  { accessToken, refreshToken, expiresAtMs, name }: GrantedTokens,
  { method }: SessionOpeningOptions,
): LogInResult {
  const identity = name === '' && method.method === 'password' ? method.username : name
  return { token: accessToken, renewal: { refreshToken, expiresAtMs }, identity }
}
