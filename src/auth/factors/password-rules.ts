import {
  permissivePrimaryRules,
  type PrimaryRules,
} from '../../entities/parts/auth-policy-factors.ts'
import type { AuthPolicy } from '../../entities/kinds/auth-policy.ts'
import { passwordSchema } from '../../entities/kinds/authenticator.ts'

type Rules = PrimaryRules['updb']

const UPPER = /\p{Lu}/u
const LOWER = /\p{Ll}/u
const DIGIT = /\p{Nd}/u
/** Any character except a letter, a number character or whitespace. */
const SPECIAL = /[^\p{L}\p{N}\s]/u

/**
 * Reason why a password cannot be set; null if it can. The reason does not contain the password.
 * Checks passwords that an administrator, the identity itself or an operator on a controller's host
 * sets.
 */
export function passwordFault(policy: AuthPolicy | undefined, password: string): string | null {
  const { maxLength } = passwordSchema
  if ([...password].length > maxLength) return `password should be at most ${maxLength} chars long`
  return passwordReason(policy?.primary.updb ?? permissivePrimaryRules.updb, password)
}

/** Reason why a password violates an auth policy; null if it does not. */
function passwordReason(rules: Rules, password: string): string | null {
  if ([...password].length < rules.minPasswordLength) {
    return `password should be at least ${rules.minPasswordLength} chars long`
  }
  if (rules.requireMixedCase && !(UPPER.test(password) && LOWER.test(password))) {
    return 'password should have both upper and lower case letters'
  }
  if (rules.requireNumberChar && !DIGIT.test(password)) return 'password should have a digit'
  if (rules.requireSpecialChar && !SPECIAL.test(password)) {
    return 'password should have a character that is neither letter nor digit'
  }
  return null
}
