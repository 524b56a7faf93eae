import { errorCode, errorMessage } from '../../lib/error-code.ts'
import { type DialError, dialError, DialFailure } from '../forward/circuit-ends.ts'

const byCode: ReadonlyMap<string, DialError> = new Map([
  ['ECONNREFUSED', dialError.refused],
  ['ETIMEDOUT', dialError.timedOut],
  ['ENOTFOUND', dialError.unknownName],
  ['EAI_AGAIN', dialError.unknownName],
  ['EMFILE', dialError.outOfResources],
  ['ENFILE', dialError.outOfResources],
  ['ENOBUFS', dialError.outOfResources],
])

/** Why the target could not be reached, as controllers and clients read it. */
export function dialFault(destination: string, error: unknown): DialFailure {
  if (error instanceof DialFailure) return error
  const code = byCode.get(errorCode(error)) ?? dialError.other
  return new DialFailure(code, `cannot reach ${destination}: ${errorMessage(error)}`)
}

export function dialTimedOut(destination: string, timeoutMs: number): DialFailure {
  return new DialFailure(dialError.timedOut, `${destination} did not answer within ${timeoutMs} ms`)
}

export function misconfigured(reason: string): DialFailure {
  return new DialFailure(dialError.misconfiguredTerminator, reason)
}
