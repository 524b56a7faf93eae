import './style/tokens.css'
import './style/base.css'
import './style/shell.css'
import './style/controls.css'
import './style/tables.css'
import './style/pages.css'
import './style/live.css'

import { signal } from '@preact/signals'
import { render } from 'preact'

import { startNavigation } from './app/navigation.ts'
import { registerPageShortcuts } from './app/pages.tsx'
import { clusterMembers, tabSession, sharedSession } from './app/console-state.ts'
import { Shell } from './app/shell.tsx'
import { finishSignIn, isRedeemingSignInCode } from './app/sign-in.ts'
import { startShortcuts } from './app/shortcuts.ts'
import { startTheme } from './app/theme.ts'
import { Toasts } from './app/toasts.tsx'
import { LogIn, LogInAgainOverlay } from './pages/log-in/log-in.tsx'
import { texts } from './texts.ts'

startTheme()
finishSignIn()
startNavigation()
startShortcuts()
registerPageShortcuts()
clusterMembers.restore(sessionStorage)

/** True until another tab has sent its session, or the timeout has passed. */
const isAsking = signal(tabSession.current.value === null)
sharedSession.request().then(
  () => (isAsking.value = false),
  () => (isAsking.value = false),
)

/** When a session has ended, its page stays unchanged behind the log-in form. */
function App() {
  const { current, hasEnded } = tabSession
  const isIn = current.value !== null && !current.value.isPartial
  const stays = isIn || hasEnded.value
  if (isAsking.value && !isRedeemingSignInCode.value) return null
  if (isRedeemingSignInCode.value) return <p class="soft gate">{texts.logIn.returning}</p>
  return (
    <>
      {stays ? <Shell /> : <LogIn />}
      {!isIn && hasEnded.value ? <LogInAgainOverlay /> : null}
      <Toasts />
    </>
  )
}

const root = document.querySelector('#app')
if (root !== null) render(<App />, root)
