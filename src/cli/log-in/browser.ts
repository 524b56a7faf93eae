import { spawn } from 'node:child_process'

import { CommandFailure } from '../../controller/command-failure.ts'
import type { GrantedTokens, OidcProviderClient } from '../client/oidc-provider-client.ts'
import { printNote } from '../terminal/output.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { RedirectListener } from './redirect-listener.ts'

/**
 * Logs in on the log-in pages of a controller, in a browser on this host.
 * @param open opens or shows an address for the user.
 * @throws {CommandFailure}
 */
export async function logInByBrowser(
  provider: OidcProviderClient,
  open: (url: string) => void = showInBrowser,
): Promise<GrantedTokens> {
  const listener = await RedirectListener.open()
  try {
    const begun = await provider.begin(listener.uri)
    const waiting = listener.wait(begun.state)
    open(begun.url)
    const answer = await waiting
    try {
      const tokens = await provider.redeem(begun, answer.parameters)
      const text = `You are logged in as ${tokens.name}. Close this window and continue in the terminal.`
      answer.show({ isLoggedIn: true, text })
      return tokens
    } catch (error) {
      answer.show({ isLoggedIn: false, text: errorMessage(error) })
      throw error instanceof CommandFailure ? withoutRetry(error) : error
    }
  } finally {
    await listener.close()
  }
}

/**
 * Marks the error as not retryable: a retry would require another log-in by the user, who has to
 * decide this.
 */
function withoutRetry(error: CommandFailure): CommandFailure {
  return new CommandFailure(error.exitCode, `${error.message}; log in again`, error)
}

/**
 * Opens the address in a browser. Also prints it, because the host may have no browser, or may open
 * an unwanted one.
 */
function showInBrowser(url: string): void {
  printNote(`log in with a browser on this host; if none opens, open this address:\n${url}`)
  const command = browserCommand()
  if (command === null) return
  const [program = '', ...words] = command
  // The browser is started without a shell, and keeps running when this command exits.
  const browser = spawn(program, [...words, url], { stdio: 'ignore', detached: true })
  browser.on('error', () => undefined)
  browser.unref()
}

function browserCommand(): readonly string[] | null {
  const { BROWSER: chosen, DISPLAY: x11, WAYLAND_DISPLAY: wayland } = process.env
  if (chosen !== undefined && chosen !== '') return [chosen]
  if (process.platform === 'darwin') return ['open']
  if (process.platform === 'win32') return ['rundll32', 'url.dll,FileProtocolHandler']
  return (x11 ?? wayland ?? '') === '' ? null : ['xdg-open']
}
