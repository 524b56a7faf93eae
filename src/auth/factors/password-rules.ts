import { openPrimary, type PrimaryRules } from '../../entities/parts/auth-policy-factors.ts'
import type { AuthPolicy } from '../../entities/kinds/auth-policy.ts'
import { passwordSchema } from '../../entities/kinds/authenticator.ts'

type Rules = PrimaryRules['updb']

const UPPER = /\p{Lu}/u
const LOWER = /\p{Ll}/u
const DIGIT = /\p{Nd}/u
/** Neither letter, digit nor blank. */
const SPECIAL = /[^\p{L}\p{N}\s]/u

/**
 * Why a password can not be set, without a word of it; null when it can. It is asked wherever one
 * is set: by an administrator, by its holder, and on the host of a controller.
 */
export function passwordFault(policy: AuthPolicy | undefined, password: string): string | null {
  const { maxLength } = passwordSchema
  if ([...password].length > maxLength) return `password should be at most ${maxLength} chars long`
  return passwordReason(policy?.primary.updb ?? openPrimary.updb, password)
}

/**
 * Why a password does not keep the rules of an auth policy, without a word of it; null when it
 * does.
 */
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
