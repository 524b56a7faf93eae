import { errorMessage } from '../../lib/error-code.ts'
import { DialFailure } from '../circuits/circuit-ends.ts'
import { dialErrorCode } from '../circuits/dial-error.ts'
import { dialError } from '../../channel/messages/dial-error.ts'

/** Failure to connect to a target, with its code for controllers and clients. */
export function targetDialFailure(destination: string, error: unknown): DialFailure {
  if (error instanceof DialFailure) return error
  const reason = `cannot reach ${destination}: ${errorMessage(error)}`
  return new DialFailure(dialErrorCode(error), reason)
}

/** @param destination as shown to operators. */
export function dialTimeoutFailure(destination: string, timeoutMs: number): DialFailure {
  return new DialFailure(dialError.timedOut, `${destination} did not answer within ${timeoutMs} ms`)
}

/** Failure of a dial because of the configuration of the service. */
export function misconfigurationFailure(reason: string): DialFailure {
  return new DialFailure(dialError.misconfiguredTerminator, reason)
}
