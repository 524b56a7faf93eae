import type { PrimaryRules } from '../../entities/auth-policy-factors.ts'

type Rules = PrimaryRules['updb']

const UPPER = /\p{Lu}/u
const LOWER = /\p{Ll}/u
const DIGIT = /\p{Nd}/u
/** Neither letter, digit nor blank. */
const SPECIAL = /[^\p{L}\p{N}\s]/u

/** Why a password does not keep the rules of an auth policy, without a word of it; null when it does. */
export function passwordReason(rules: Rules, password: string): string | null {
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
