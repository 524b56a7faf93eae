import { ApiRefusalError } from '../../client/client-errors.ts'
import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'

const SENTENCE_CHARACTERS_MAX = 600

/**
 * A controller refused the request. `message` is one sentence that names the faulty field, if any.
 * If the response does not come from a controller, `code` is ''.
 */
export class ApiRefusal extends CommandFailure {
  readonly status: number
  readonly code: string
  /** Name of the faulty field in the body; null when the refusal is not about a field. */
  readonly field: string | null

  constructor(status: number, code: string, message: string, field: string | null = null) {
    super(EXIT_FAILED, message)
    this.status = status
    this.code = code
    this.field = field
  }
}

/**
 * Advice for users, by error code. The API message of these codes addresses only programs that
 * repeat a request by its ID.
 */
const remedies: Readonly<Record<string, string>> = {
  CLUSTER_NO_LEADER:
    "the cluster has no leader; nothing was changed; 'flotilla cluster status' names the controllers to start",
  OUTCOME_UNKNOWN:
    "the leader was lost before it answered: see 'flotilla cluster status', then run the same command again",
}

/**
 * Parses an unsuccessful response. The code is '' when the response does not come from a
 * controller.
 */
export function parseApiRefusal(status: number, body: unknown): ApiRefusal {
  return toApiRefusal(new ApiRefusalError(status, body))
}

export function toApiRefusal({
  status,
  code,
  message,
  detail,
  fault,
}: ApiRefusalError): ApiRefusal {
  if (code === '') {
    return new ApiRefusal(status, '', `unexpected response status ${status}; is it a controller?`)
  }
  const text = fault === null ? detail || message : withField(fault.field, fault.reason)
  const reason = code === 'UNAUTHORIZED' && fault === null ? deniedText(detail) : text
  const sentence = remedies[code] ?? printableLine(reason, SENTENCE_CHARACTERS_MAX)
  return new ApiRefusal(status, code, sentence, fault?.field ?? null)
}

/** @param detail the missing permission; '' if the controller does not send it. */
function deniedText(detail: string): string {
  // Controllers name no permission to a session that lacks a second factor.
  if (detail === '') {
    return 'permission denied; log in again if the identity has a second factor by now, otherwise ask an administrator for the permission'
  }
  return `permission denied: ${detail}; ask an administrator`
}

/**
 * Puts the field name before the reason, unless the reason already begins with it, as OpenZiti's
 * reasons often do.
 */
function withField(field: string, reason: string): string {
  return reason.startsWith(`${field} `) ? reason : `${field}: ${reason}`
}
