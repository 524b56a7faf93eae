import {
  NoResponseError,
  OutcomeUnknownError,
  UnreachableError,
} from '../../client/client-errors.ts'
import {
  type CommandFailure,
  EXIT_DENIED,
  EXIT_SUCCESS,
  EXIT_DIFFERENCES_FOUND,
  EXIT_FAILED,
  EXIT_NOT_FOUND,
  EXIT_UNREACHABLE,
  EXIT_USAGE,
} from '../../controller/command-failure.ts'
import type { ProblemCode } from '../../lib/problems.ts'

interface ExitCode {
  readonly code: number
  readonly meaning: string
  /** `error.code` with -o json, if no error in the chain of causes has an error code. */
  readonly errorCode: string
}

/**
 * The exit codes of the program; only `cluster health` has the exit codes of a monitoring plugin. A
 * test prints the table into docs/reference/cli.md.
 */
export const exitCodes = [
  { code: EXIT_SUCCESS, meaning: 'done', errorCode: '' },
  { code: EXIT_FAILED, meaning: 'another failure; stderr gives the reason', errorCode: 'FAILED' },
  { code: EXIT_USAGE, meaning: 'wrong usage, or a fault in a file', errorCode: 'USAGE' },
  {
    code: EXIT_DENIED,
    meaning: 'denied: no session, refused credentials or a missing permission',
    errorCode: 'DENIED',
  },
  { code: EXIT_NOT_FOUND, meaning: 'the record does not exist', errorCode: 'NOT_FOUND' },
  {
    code: EXIT_UNREACHABLE,
    meaning: 'no leader, or no controller can be reached; try again later',
    errorCode: 'UNREACHABLE',
  },
  {
    code: EXIT_DIFFERENCES_FOUND,
    meaning: 'apply or import with --dry-run: the network differs from the file',
    errorCode: '',
  },
] as const satisfies readonly ExitCode[]

/**
 * Exit codes for error codes from the API, the admin socket and the client. All other error codes
 * exit with 1.
 */
const exitsOfErrorCodes: Readonly<Partial<Record<ProblemCode, number>> & Record<string, number>> = {
  ADMIN_SOCKET_ONLY: EXIT_DENIED,
  ENROLLMENT_EXPIRED: EXIT_DENIED,
  INVALID_AUTH: EXIT_DENIED,
  INVALID_ENROLLMENT_TOKEN: EXIT_DENIED,
  MFA_INVALID_TOKEN: EXIT_DENIED,
  NO_PERMISSION: EXIT_DENIED,
  NO_SESSION: EXIT_DENIED,
  TICKET_REFUSED: EXIT_DENIED,
  UNAUTHORIZED: EXIT_DENIED,
  access_denied: EXIT_DENIED,
  invalid_grant: EXIT_DENIED,
  NOT_FOUND: EXIT_NOT_FOUND,
  CLUSTER_NO_LEADER: EXIT_UNREACHABLE,
  NOT_RUNNING: EXIT_UNREACHABLE,
  NO_ANSWER: EXIT_UNREACHABLE,
  PEER_UNREACHABLE: EXIT_UNREACHABLE,
}

/** Exit code and error code of a failure, for programs. */
interface FailureCause {
  readonly exitCode: number
  readonly errorCode: string
}

/**
 * The exit code and error code of the first error in the chain of causes that has an error code;
 * the chain begins with the failure itself. An exit code of the failure other than 1 is kept. If no
 * error has an error code: the exit code of the failure, and the error code that belongs to it.
 */
export function findFailureCause(failure: CommandFailure): FailureCause {
  const { exitCode } = failure
  for (let error: unknown = failure; error instanceof Error; { cause: error } = error) {
    const found = causeOf(error)
    if (found === null) continue
    return { ...found, exitCode: exitCode === EXIT_FAILED ? found.exitCode : exitCode }
  }
  const usual = exitCodes.find(({ code }) => code === exitCode)
  return { exitCode, errorCode: usual?.errorCode ?? 'FAILED' }
}

function causeOf(error: Error): FailureCause | null {
  // The controller may have executed the write, so the exit code must not suggest that the command
  // can be repeated.
  if (error instanceof OutcomeUnknownError) {
    return { errorCode: 'OUTCOME_UNKNOWN', exitCode: EXIT_FAILED }
  }
  const { code } = error as { readonly code?: unknown }
  if (typeof code === 'string' && code !== '') {
    const isKnown = Object.hasOwn(exitsOfErrorCodes, code)
    return { errorCode: code, exitCode: (isKnown ? exitsOfErrorCodes[code] : null) ?? EXIT_FAILED }
  }
  const isSilent = error instanceof UnreachableError || error instanceof NoResponseError
  return isSilent ? { errorCode: 'UNREACHABLE', exitCode: EXIT_UNREACHABLE } : null
}
