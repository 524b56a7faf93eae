import { errorMessage } from '../../lib/error-code.ts'
import { DialFailure } from '../circuits/circuit-endpoint.ts'
import { toDialErrorCode } from '../circuits/dial-error.ts'
import { dialErrorCodes } from '../../channel/messages/dial-error.ts'

/** Error for a target that cannot be reached, with a code for controllers and clients. */
export function targetDialFailure(destination: string, error: unknown): DialFailure {
  if (error instanceof DialFailure) return error
  const reason = `cannot reach ${destination}: ${errorMessage(error)}`
  return new DialFailure(toDialErrorCode(error), reason)
}

/** @param destination the target, as shown to operators. */
export function dialTimeoutFailure(destination: string, timeoutMs: number): DialFailure {
  return new DialFailure(
    dialErrorCodes.timedOut,
    `${destination} did not answer within ${timeoutMs} ms`,
  )
}

/** Error for a dial that the configuration of the service makes impossible. */
export function misconfigurationFailure(reason: string): DialFailure {
  return new DialFailure(dialErrorCodes.misconfiguredTerminator, reason)
}
