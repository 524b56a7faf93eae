import type { Enrollment, EnrollmentMethod } from '../../entities/enrollment.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { latest } from '../consistency.ts'
import type { ApiParts } from '../parts.ts'

const TOKEN_CHARACTERS_MAX = 64

/**
 * The enrollment that a token opens, judged as it is known here; whether it still does is judged
 * again where it is used up.
 * @throws {Problem} COULD_NOT_VALIDATE without a token, INVALID_ENROLLMENT_TOKEN,
 * INVALID_ENROLL_METHOD, ENROLLMENT_EXPIRED.
 */
export async function outstanding(
  parts: ApiParts,
  token: string | undefined,
  methods: readonly EnrollmentMethod[],
): Promise<Enrollment> {
  if (token === undefined || token === '') throw fieldProblem('token', 'token is required')
  if (token.length > TOKEN_CHARACTERS_MAX) throw new Problem('INVALID_ENROLLMENT_TOKEN')
  const { state, clock } = parts
  const found = await latest(
    parts,
    () => state.find('enrollment', 'token', token) as Enrollment | undefined,
  )
  if (found === undefined) throw new Problem('INVALID_ENROLLMENT_TOKEN')
  if (!methods.includes(found.method)) {
    throw new Problem('INVALID_ENROLL_METHOD', {
      detail: `the token is for the method ${found.method}`,
    })
  }
  if ((found.expiresAt ?? 0) <= clock.nowMs()) throw new Problem('ENROLLMENT_EXPIRED')
  return found
}

/** Whether a refusal says that the token was used, here or elsewhere, a moment or longer ago. */
export function isTokenUnknown(error: unknown): boolean {
  return error instanceof Problem && error.code === 'INVALID_ENROLLMENT_TOKEN'
}

/** A token that has been used, by whoever does not bring what it was used with. */
export function tokenUsed(): Problem {
  return new Problem('INVALID_ENROLLMENT_TOKEN', {
    detail: 'the token has been used; an administrator can create a new enrollment',
  })
}
