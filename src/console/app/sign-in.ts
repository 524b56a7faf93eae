import { signal } from '@preact/signals'

import {
  beginProviderSignIn,
  beginSignIn,
  CALLBACK_PATH,
  type LogInProvider,
  readReturnedCode,
} from '../client/sign-in.ts'
import { texts } from '../texts.ts'
import { ApiRefusalError } from '../../client/client-errors.ts'
import { failureText } from './failure.tsx'
import { tabSession } from './console-state.ts'

let fault = ''
/**
 * True while the console redeems the sign-in page's code; the log-in form is hidden meanwhile.
 */
export const isRedeemingSignInCode = signal(false)

/** Returns and clears the reason why signing in failed; '' if there is none. */
export function takeSignInFault(): string {
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
  const endpoint = await tabSession.authorizationEndpoint(provider.id)
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
    if (tabSession.current.value === null) {
      fault = refusal === null ? texts.logIn.signInUnknown : texts.logIn.providerRefused
    }
    return
  }
  isRedeemingSignInCode.value = true
  tabSession
    .signIn(returned, location.origin)
    .catch((error: unknown) => {
      const isRefused = error instanceof ApiRefusalError && error.status === 401
      const isProvider = returned.signerId !== null
      fault = isProvider && isRefused ? texts.logIn.providerRefused : failureText(error)
    })
    .finally(() => (isRedeemingSignInCode.value = false))
    .catch(() => undefined)
}
