import { errorCode, errorMessage } from '../../lib/error-code.ts'
import { DialFailure } from './circuit-endpoint.ts'
import { type DialErrorCode, dialErrorCodes } from '../../channel/messages/dial-error.ts'

const byCode: ReadonlyMap<string, DialErrorCode> = new Map([
  ['ECONNREFUSED', dialErrorCodes.refused],
  ['EMFILE', dialErrorCodes.outOfResources],
  ['ENFILE', dialErrorCodes.outOfResources],
  ['ENOBUFS', dialErrorCodes.outOfResources],
  ['ENOTFOUND', dialErrorCodes.unknownName],
  ['EAI_AGAIN', dialErrorCodes.unknownName],
  ['EAI_NODATA', dialErrorCodes.unknownName],
  ['EAI_NONAME', dialErrorCodes.unknownName],
  ['ETIMEDOUT', dialErrorCodes.timedOut],
])

/**
 * SDK hosts report failed dials only as text, with the messages of the OpenZiti programs. This
 * table maps the messages to codes.
 */
const byText: readonly (readonly [string, DialErrorCode])[] = [
  ['no such host', dialErrorCodes.unknownName],
  ['server misbehaving', dialErrorCodes.unknownName],
  ['not in allowed port ranges', dialErrorCodes.portNotAllowed],
  ['rejected by application', dialErrorCodes.rejected],
]

/** Failure code for the response to a dial. */
export function toDialErrorCode(error: unknown): DialErrorCode {
  if (error instanceof DialFailure && error.code !== dialErrorCodes.other) return error.code
  const known = byCode.get(errorCode(error))
  if (known !== undefined) return known
  const text = errorMessage(error)
  return byText.find(([part]) => text.includes(part))?.[1] ?? dialErrorCodes.other
}
