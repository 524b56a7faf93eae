import { CommandFailure, EXIT_DENIED, EXIT_FAILED } from '../../controller/command-failure.ts'
import { printableValue } from '../../lib/text/terminal-text.ts'
import { printNote } from '../terminal/output.ts'
import { HttpsFault } from '../client/https-request.ts'
import {
  type DeviceLogIn,
  type GrantedTokens,
  type OidcProviderClient,
  OidcProviderRefusal,
} from '../client/oidc-provider-client.ts'

/** Increase of the polling interval (RFC 8628, 3.5). */
const SLOWER_MS = 5000

/**
 * Logs in without a browser on this host: the user confirms the log-in with a code in a browser on
 * another device (RFC 8628).
 * @param next returns another controller to try when the previous one is unreachable.
 * @throws {CommandFailure}
 */
export async function logInByDevice(
  provider: OidcProviderClient,
  next: () => Promise<OidcProviderClient>,
  show: (begun: DeviceLogIn) => void = showInTerminal,
  pause: (ms: number) => Promise<void> = (ms) => new Promise((done) => setTimeout(done, ms)),
): Promise<GrantedTokens> {
  if (!provider.hasDeviceCodes) {
    throw new CommandFailure(
      EXIT_FAILED,
      `${provider.controller}: it does not offer log-ins by device code; log in in another way`,
    )
  }
  const begun = await provider.beginDevice()
  show(begun)
  let { intervalMs } = begun
  let asked = provider
  for (let leftMs = begun.expiresInMs; leftMs > 0; leftMs -= intervalMs) {
    await pause(intervalMs)
    try {
      return await asked.pollDevice(begun)
    } catch (error) {
      intervalMs += slowerBy(error)
      // Every controller accepts the device code, so another controller can continue the log-in.
      if (error instanceof HttpsFault) asked = await next().catch(() => asked)
    }
  }
  throw tookTooLong()
}

/**
 * @returns by how much the polling interval increases.
 * @throws the error if it ends the log-in.
 */
function slowerBy(error: unknown): number {
  // RFC 8628, 3.5 requires longer polling intervals after a connection timeout.
  if (error instanceof HttpsFault) return SLOWER_MS
  if (!(error instanceof OidcProviderRefusal)) throw error
  if (error.code === 'authorization_pending') return 0
  if (error.code === 'slow_down' || error.isPassing) return SLOWER_MS
  if (error.code === 'access_denied') {
    throw new CommandFailure(EXIT_DENIED, 'log-in refused: it was denied in the browser', error)
  }
  throw error.code === 'expired_token' ? tookTooLong() : error
}

function tookTooLong(): CommandFailure {
  return new CommandFailure(EXIT_DENIED, 'nobody allowed the log-in in time; log in again')
}

function showInTerminal(begun: DeviceLogIn): void {
  const { userCode, verificationUri, verificationUriComplete } = printableValue(begun)
  const whole =
    verificationUriComplete === null
      ? ''
      : `\nor open this address, and compare the code:\n${verificationUriComplete}`
  printNote(`open ${verificationUri} in any browser, and enter the code ${userCode}${whole}`)
}
