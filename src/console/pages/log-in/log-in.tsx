import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

import { failureText } from '../../app/failure.tsx'
import { visibleText } from '../../app/visible-text.ts'
import type { LogInProvider } from '../../client/sign-in.ts'
import { tabSession } from '../../app/console-state.ts'
import { ApiRefusalError } from '../../../client/client-errors.ts'
import type { ConsoleLogInMethod } from '../../client/session.ts'
import { Button } from '../../controls/button.tsx'
import { CheckedForm } from '../../controls/checked-form.tsx'
import { TextField } from '../../controls/field.tsx'
import { ConsoleLogo } from '../../controls/icon.tsx'
import { startProviderSignIn, startSignIn, takeSignInFault } from '../../app/sign-in.ts'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'

/** The log-in page, which the console shows while this tab has no session. */
export function LogIn() {
  const { logIn, product } = texts
  useEffect(() => {
    document.title = `${logIn.title} · ${product}`
  }, [])
  return (
    <main class="gate">
      <div class="gate-card">
        <div class="gate-mark">
          <ConsoleLogo size={28} />
          {product}
        </div>
        <div>
          <h1>{logIn.title}</h1>
          <p class="page-lead">{logIn.lead(location.host)}</p>
        </div>
        <LogInForm hasSignIn />
      </div>
    </main>
  )
}

/**
 * Log-in form that covers a page whose session has ended; the page keeps its typed values. The
 * sign-in page returns to this page, and drafts stay in the tab.
 */
export function LogInAgainOverlay() {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    element.current?.showModal()
    return () => element.current?.close()
  }, [])
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-labelledby="log-in-again"
      onCancel={(event) => event.preventDefault()}
    >
      <div class="dialog-head">
        <h2 id="log-in-again">{texts.logIn.again}</h2>
      </div>
      <div class="dialog-body">
        <p class="soft">{texts.logIn.againLead}</p>
        <LogInForm hasSignIn />
      </div>
    </dialog>
  )
}

function LogInForm({ hasSignIn = false }: { readonly hasSignIn?: boolean }) {
  if (tabSession.current.value?.isPartial === true) return <FactorForm />
  return <PasswordForm hasSignIn={hasSignIn} />
}

/** The same text for an unknown user name and for a wrong password. */
function refusalText(error: unknown): string {
  const isRefused =
    error instanceof ApiRefusalError && (error.status === 401 || error.status === 400)
  return isRefused ? texts.logIn.refused : failureText(error)
}

function PasswordForm({ hasSignIn }: { readonly hasSignIn: boolean }) {
  const { logIn } = texts
  const username = useSignal('')
  const password = useSignal('')
  const fault = useSignal('')
  useEffect(() => {
    if (hasSignIn) fault.value = takeSignInFault()
  }, [])
  const busy = useSignal<ConsoleLogInMethod['kind'] | null>(null)
  const attempt = (method: ConsoleLogInMethod): void => {
    if (busy.value !== null) return
    busy.value = method.kind
    fault.value = ''
    tabSession
      .logIn(method)
      .catch((error: unknown) => {
        fault.value =
          method.kind === 'certificate' && error instanceof ApiRefusalError && error.status === 401
            ? logIn.certificateRefused
            : refusalText(error)
      })
      .finally(() => (busy.value = null))
      .catch(() => undefined)
  }
  return (
    <CheckedForm
      class="form log-in"
      onSubmit={() => {
        attempt({ kind: 'password', username: username.value, password: password.value })
      }}
    >
      {fault.value === '' ? null : <Notice tone="bad">{fault.value}</Notice>}
      <TextField
        label={logIn.username}
        name="username"
        autocomplete="username"
        isRequired
        isFocused
        value={username.value}
        onInput={(value) => (username.value = value)}
      />
      <TextField
        label={logIn.password}
        name="password"
        type="password"
        autocomplete="current-password"
        isRequired
        value={password.value}
        onInput={(value) => (password.value = value)}
      />
      <Button type="submit" kind="primary" isWide isBusy={busy.value === 'password'}>
        {busy.value === 'password' ? logIn.busy : logIn.submit}
      </Button>
      <div class="divider">{logIn.or}</div>
      <Button
        icon="key"
        isWide
        isBusy={busy.value === 'certificate'}
        onClick={() => attempt({ kind: 'certificate' })}
      >
        {logIn.byCertificate}
      </Button>
      {hasSignIn ? (
        <Button
          icon="identity"
          isWide
          onClick={() => {
            startSignIn().catch((error: unknown) => (fault.value = failureText(error)))
          }}
        >
          {logIn.bySignInPage}
        </Button>
      ) : null}
      {hasSignIn ? <ProviderButtons onFault={(text) => (fault.value = text)} /> : null}
    </CheckedForm>
  )
}

/** A button for each provider that logs people in. */
function ProviderButtons({ onFault }: { readonly onFault: (text: string) => void }) {
  const providers = useSignal<readonly LogInProvider[]>([])
  useEffect(() => {
    // If the request fails, the other ways to log in remain.
    tabSession.logInProviders().then(
      (found) => (providers.value = found),
      () => undefined,
    )
  }, [])
  return (
    <>
      {providers.value.map((provider) => (
        <Button
          key={provider.id}
          icon="identity"
          isWide
          onClick={() => {
            onFault('')
            startProviderSignIn(provider).catch((error: unknown) => onFault(failureText(error)))
          }}
        >
          {texts.logIn.byProvider(visibleText(provider.name))}
        </Button>
      ))}
    </>
  )
}

function FactorForm() {
  const { logIn } = texts
  const code = useSignal('')
  const fault = useSignal('')
  const isBusy = useSignal(false)
  return (
    <CheckedForm
      class="form log-in"
      onSubmit={() => {
        if (isBusy.value) return
        isBusy.value = true
        fault.value = ''
        tabSession
          .proveFactor(code.value.trim())
          .catch((error: unknown) => {
            fault.value =
              error instanceof ApiRefusalError && error.status < 500
                ? logIn.codeRefused
                : failureText(error)
            const input = document.querySelector<HTMLInputElement>('[name="code"]')
            input?.focus()
            input?.select()
          })
          .finally(() => (isBusy.value = false))
          .catch(() => undefined)
      }}
    >
      {fault.value === '' ? null : <Notice tone="bad">{fault.value}</Notice>}
      <TextField
        label={logIn.code}
        hint={logIn.codeHint}
        name="code"
        autocomplete="one-time-code"
        isRequired
        isFocused
        isMono
        value={code.value}
        onInput={(value) => (code.value = value)}
      />
      <Button type="submit" kind="primary" isWide isBusy={isBusy.value}>
        {logIn.prove}
      </Button>
      <Button
        kind="quiet"
        onClick={() => {
          tabSession.logOut().catch(() => undefined)
        }}
      >
        {logIn.cancel}
      </Button>
    </CheckedForm>
  )
}
