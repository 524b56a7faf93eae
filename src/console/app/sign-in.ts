import { signal } from '@preact/signals'

import {
  beginProviderSignIn,
  beginSignIn,
  CALLBACK_PATH,
  type LogInProvider,
  readReturnedCode,
} from '../client/sign-in.ts'
import { texts } from '../texts.ts'
import { ApiRefusalError } from '../../client/problem.ts'
import { failureText } from './failure.tsx'
import { session } from './services.ts'

let fault = ''
/**
 * True while the console redeems the sign-in page's code; the log-in form is hidden meanwhile.
 */
export const isReturning = signal(false)

/** Returns and clears the reason why signing in failed; '' if there is none. */
export function popSignInFault(): string {
  const shown = fault
  fault = ''
  return shown
}

/** Opens the sign-in page of this controller in this tab. */
export async function startSignIn(): Promise<void> {
  const backTo = location.pathname + location.search
  location.assign(await beginSignIn(sessionStorage, location.origin, backTo))
}

/** Opens the log-in page of a provider in this tab. */
export async function startProviderSignIn(provider: LogInProvider): Promise<void> {
  const backTo = location.pathname + location.search
  const endpoint = await session.authorizationEndpoint(provider.id)
  const { origin } = location
  location.assign(await beginProviderSignIn(sessionStorage, origin, backTo, provider, endpoint))
}

/**
 * Continues the sign-in after the browser returns from the sign-in page. Must be called before the
 * router reads the address.
 */
export function finishSignIn(): void {
  const query = new URLSearchParams(location.search)
  const isBack = location.pathname === CALLBACK_PATH && query.has('state')
  if (!isBack) return
  const refusal = query.get('error')
  const returned = readReturnedCode(sessionStorage, location)
  // Removes the code from the address and from the history of the browser.
  history.replaceState(null, '', returned?.backTo ?? CALLBACK_PATH)
  if (returned === null) {
    if (session.current.value === null) {
      fault = refusal === null ? texts.logIn.signInUnknown : texts.logIn.providerRefused
    }
    return
  }
  isReturning.value = true
  session
    .signIn(returned, location.origin)
    .catch((error: unknown) => {
      const isRefused = error instanceof ApiRefusalError && error.status === 401
      const isProvider = returned.signerId !== null
      fault = isProvider && isRefused ? texts.logIn.providerRefused : failureText(error)
    })
    .finally(() => (isReturning.value = false))
    .catch(() => undefined)
}
