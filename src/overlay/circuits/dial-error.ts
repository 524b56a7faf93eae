import { errorCode, errorMessage } from '../../lib/error-code.ts'
import { DialFailure } from './circuit-ends.ts'
import { type DialError, dialError } from '../../channel/messages/dial-error.ts'

const byCode: ReadonlyMap<string, DialError> = new Map([
  ['ECONNREFUSED', dialError.refused],
  ['EMFILE', dialError.outOfResources],
  ['ENFILE', dialError.outOfResources],
  ['ENOBUFS', dialError.outOfResources],
  ['ENOTFOUND', dialError.unknownName],
  ['EAI_AGAIN', dialError.unknownName],
  ['EAI_NODATA', dialError.unknownName],
  ['EAI_NONAME', dialError.unknownName],
  ['ETIMEDOUT', dialError.timedOut],
])

/**
 * SDK hosts report failed dials only as text, with the messages of the OpenZiti programs. This
 * table maps the messages to codes.
 */
const byText: readonly (readonly [string, DialError])[] = [
  ['no such host', dialError.unknownName],
  ['server misbehaving', dialError.unknownName],
  ['not in allowed port ranges', dialError.portNotAllowed],
  ['rejected by application', dialError.rejected],
]

/** Failure code for the response to a dial. */
export function dialErrorCode(error: unknown): DialError {
  if (error instanceof DialFailure && error.code !== dialError.other) return error.code
  const known = byCode.get(errorCode(error))
  if (known !== undefined) return known
  const text = errorMessage(error)
  return byText.find(([part]) => text.includes(part))?.[1] ?? dialError.other
}
