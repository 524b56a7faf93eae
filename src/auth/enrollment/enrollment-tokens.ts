import type { Enrollment, EnrollmentMethod } from '../../entities/kinds/enrollment.ts'
import { enrollmentTokenDigest } from '../../fsm/enrollment/enrollment.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { Clock } from '../../lib/clock.ts'
import type { LatestReads } from '../../ports/latest-reads.ts'

const TOKEN_CHARACTERS_MAX = 64

interface TokenDeps {
  readonly state: StateView
  readonly clock: Clock
  readonly reads: LatestReads
}

/**
 * Finds the unused enrollment of a token; the state machine checks the enrollment again.
 * @throws {Problem} COULD_NOT_VALIDATE without a token, INVALID_ENROLLMENT_TOKEN,
 * INVALID_ENROLL_METHOD, ENROLLMENT_EXPIRED.
 */
export async function findOutstandingEnrollment(
  parts: TokenDeps,
  token: string | undefined,
  methods: readonly EnrollmentMethod[],
): Promise<Enrollment> {
  const { clock } = parts
  const found = await enrollmentOf(parts, token)
  if (found === undefined) throw new Problem('INVALID_ENROLLMENT_TOKEN')
  // @guard foreign-tokens--method
  if (!methods.includes(found.method)) {
    throw new Problem('INVALID_ENROLL_METHOD', {
      detail: `the token is for the method ${found.method}`,
    })
  }
  // @guard foreign-tokens--ended
  if ((found.expiresAt ?? 0) <= clock.nowMs()) throw new Problem('ENROLLMENT_EXPIRED')
  return found
}

/**
 * Returns the enrollment method of a token. A used token gets the method of the router or
 * authenticator that it created, so that a client can repeat its request after a lost response.
 * @throws {Problem} COULD_NOT_VALIDATE without a token, INVALID_ENROLLMENT_TOKEN.
 */
export async function tokenEnrollmentMethod(
  parts: TokenDeps,
  token: string | undefined,
): Promise<EnrollmentMethod> {
  const found = await enrollmentOf(parts, token)
  if (found !== undefined) return found.method
  const { state } = parts
  const digest = enrollmentTokenDigest(token ?? '')
  if (state.find('router', 'enrolledBy', digest) !== undefined) return 'erott'
  const known = state.find('authenticator', 'enrolledBy', digest)
  if (known === undefined) throw new Problem('INVALID_ENROLLMENT_TOKEN')
  if (known.method === 'updb') return 'updb'
  return known.caId === '' ? 'ott' : 'ottca'
}

async function enrollmentOf(
  parts: TokenDeps,
  token: string | undefined,
): Promise<Enrollment | undefined> {
  if (token === undefined || token === '') throw fieldProblem('token', 'token is required')
  if (token.length > TOKEN_CHARACTERS_MAX) throw new Problem('INVALID_ENROLLMENT_TOKEN')
  const { state } = parts
  // @guard foreign-tokens--record
  return parts.reads.latest(() => state.find('enrollment', 'token', token))
}

/**
 * Whether a request was refused because no enrollment has its token, for example because the token
 * was used before.
 */
export function isUnknownTokenError(error: unknown): boolean {
  return error instanceof Problem && error.code === 'INVALID_ENROLLMENT_TOKEN'
}

/**
 * Problem for a token that was already used, when the request is no repetition that can be answered
 * again.
 */
export function tokenAlreadyUsedProblem(): Problem {
  return new Problem('INVALID_ENROLLMENT_TOKEN', {
    detail: 'the token has been used; an administrator can create a new enrollment',
  })
}
