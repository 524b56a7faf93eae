import { DialFailure } from '../../overlay/circuits/circuit-endpoint.ts'
import { targetDialFailure, dialTimeoutFailure } from '../../overlay/sockets/dial-failures.ts'
import { dialErrorCodes } from '../../channel/messages/dial-error.ts'

/**
 * Returns the result of `work` unless the timeout expires or the circuit ends first. In these
 * cases, the caller must release a result that arrives later.
 * @throws {DialFailure}
 */
export async function withDialTimeout<T>(
  work: Promise<T>,
  destination: string,
  waitMs: number,
  signal: AbortSignal,
): Promise<T> {
  const { promise: givenUp, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(dialTimeoutFailure(destination, waitMs)), waitMs)
  const onAbort = (): void => reject(new DialFailure(dialErrorCodes.other, 'the circuit has ended'))
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([givenUp, work])
  } catch (error) {
    throw targetDialFailure(destination, error)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}
