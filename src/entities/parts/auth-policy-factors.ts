import { fieldLimits } from '../fields.ts'
import { booleanSchema, openObjectSchema } from '../response-schemas.ts'

/** Minimum length of any password; an auth policy cannot allow shorter ones. */
export const passwordLengthMin = 5

/** Schema for a number of attempts or minutes; 0 and negative numbers mean unlimited. */
const count = { type: 'integer', maximum: 52_560_000 } as const
const signerId = { type: 'string', maxLength: 128 } as const

export const primaryRulesSchema = openObjectSchema({
  cert: openObjectSchema({ allowed: booleanSchema, allowExpiredCerts: booleanSchema }),
  extJwt: openObjectSchema({
    allowed: booleanSchema,
    allowedSigners: { type: 'array', maxItems: fieldLimits.referencesMax, items: signerId },
  }),
  updb: openObjectSchema({
    allowed: booleanSchema,
    lockoutDurationMinutes: count,
    maxAttempts: count,
    // At most the maximum length of a password.
    minPasswordLength: { type: 'integer', maximum: 100 },
    requireMixedCase: booleanSchema,
    requireNumberChar: booleanSchema,
    requireSpecialChar: booleanSchema,
  }),
})

export const secondaryRulesSchema = openObjectSchema(
  {
    requireExtJwtSigner: { type: ['string', 'null'], maxLength: 128 },
    requireTotp: booleanSchema,
  },
  ['requireExtJwtSigner'],
)

/** A type alias, not an interface, because only a type alias is assignable to JSON. */
export type PrimaryRules = {
  readonly cert: { readonly allowed: boolean; readonly allowExpiredCerts: boolean }
  readonly extJwt: { readonly allowed: boolean; readonly allowedSigners: readonly string[] }
  readonly updb: {
    readonly allowed: boolean
    readonly lockoutDurationMinutes: number
    readonly maxAttempts: number
    readonly minPasswordLength: number
    readonly requireMixedCase: boolean
    readonly requireNumberChar: boolean
    readonly requireSpecialChar: boolean
  }
}
/** A type alias, not an interface, because only a type alias is assignable to JSON. */
export type SecondaryRules = {
  readonly requireExtJwtSigner: string | null
  readonly requireTotp: boolean
}

/**
 * Rules of the policy that is created with the cluster; also the zero values of the two stored
 * fields, so a policy without these fields has these rules. Never add or change a member, or two
 * releases would store different bytes for the same record. Add a new rule as a separate field in
 * `kinds/auth-policy.ts`, with `since` (ADR 14).
 */
export const permissivePrimaryRules: PrimaryRules = {
  cert: { allowExpiredCerts: true, allowed: true },
  extJwt: { allowed: true, allowedSigners: [] },
  updb: {
    allowed: true,
    lockoutDurationMinutes: 0,
    maxAttempts: 0,
    minPasswordLength: 8,
    requireMixedCase: false,
    requireNumberChar: false,
    requireSpecialChar: false,
  },
}
export const permissiveSecondaryRules: SecondaryRules = {
  requireExtJwtSigner: null,
  requireTotp: false,
}
