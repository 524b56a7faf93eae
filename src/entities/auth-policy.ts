import { crud } from './crud.ts'
import { defineEntity } from './define.ts'
import type { EntityOf } from './define.ts'
import { boolean, fieldLimits, nameText, object, references } from './fields.ts'
import { flag } from './shapes.ts'

/** Attempts and minutes; what is negative in a body means no end. */
const count = { type: 'integer', maximum: 52_560_000 } as const
const signerId = { type: 'string', maxLength: 128 } as const

const primarySchema = {
  type: 'object',
  properties: {
    cert: {
      type: 'object',
      properties: { allowed: flag, allowExpiredCerts: flag },
      required: ['allowed', 'allowExpiredCerts'],
    },
    extJwt: {
      type: 'object',
      properties: {
        allowed: flag,
        allowedSigners: { type: 'array', maxItems: fieldLimits.referencesMax, items: signerId },
      },
      required: ['allowed', 'allowedSigners'],
    },
    updb: {
      type: 'object',
      properties: {
        allowed: flag,
        lockoutDurationMinutes: count,
        maxAttempts: count,
        // No password is longer than that.
        minPasswordLength: { type: 'integer', maximum: 100 },
        requireMixedCase: flag,
        requireNumberChar: flag,
        requireSpecialChar: flag,
      },
      required: [
        'allowed',
        'minPasswordLength',
        'requireSpecialChar',
        'requireNumberChar',
        'requireMixedCase',
        'maxAttempts',
        'lockoutDurationMinutes',
      ],
    },
  },
  required: ['cert', 'extJwt', 'updb'],
} as const

const secondarySchema = {
  type: 'object',
  properties: {
    requireExtJwtSigner: { type: ['string', 'null'], maxLength: 128 },
    requireTotp: flag,
  },
  required: ['requireTotp'],
} as const

export interface PrimaryRules {
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
export interface SecondaryRules {
  readonly requireExtJwtSigner: string | null
  readonly requireTotp: boolean
}

type JsonOf<T> = T & Readonly<Record<string, never>>

/** What the seeded policy allows, and what a policy says where it says nothing. */
export const openPrimary: PrimaryRules = {
  cert: { allowExpiredCerts: true, allowed: true },
  extJwt: { allowed: true, allowedSigners: [] },
  updb: {
    allowed: true,
    lockoutDurationMinutes: 0,
    maxAttempts: 0,
    minPasswordLength: 5,
    requireMixedCase: false,
    requireNumberChar: false,
    requireSpecialChar: false,
  },
}
export const openSecondary: SecondaryRules = { requireExtJwtSigner: null, requireTotp: false }

const flags = [
  'primary.cert.allowed',
  'primary.cert.allowExpiredCerts',
  'primary.extJwt.allowed',
  'primary.updb.allowed',
  'primary.updb.requireMixedCase',
  'primary.updb.requireNumberChar',
  'primary.updb.requireSpecialChar',
  'secondary.requireTotp',
]
const numbers = ['primary.updb.minPasswordLength', 'primary.updb.maxAttempts']

/** How the identities that name it may prove who they are. */
export const authPolicy = defineEntity({
  name: 'authPolicy',
  plural: 'authPolicies',
  operations: { management: crud('auth-policy') },
  fields: {
    name: nameText(),
    primary: object<JsonOf<PrimaryRules>>(primarySchema, openPrimary as JsonOf<PrimaryRules>, {
      required: true,
      mergedOnto: openPrimary as JsonOf<PrimaryRules>,
    }),
    secondary: object<JsonOf<SecondaryRules>>(
      secondarySchema,
      openSecondary as JsonOf<SecondaryRules>,
      { required: true, mergedOnto: openSecondary as JsonOf<SecondaryRules> },
    ),
    /** Out of the nested lists whenever they are written, so that the signers know who names them. */
    allowedSignerIds: references('externalJwtSigner', 'refuse', {
      settable: 'never',
      shown: 'never',
      faultField: 'primary.extJwt.allowedSigners',
    }),
    requiredSignerIds: references('externalJwtSigner', 'refuse', {
      settable: 'never',
      shown: 'never',
      faultField: 'secondary.requireExtJwtSigner',
    }),
    isSystem: boolean({ settable: 'never', shown: 'never' }),
  },
  symbols: [
    'name',
    ...flags.map((name) => ({ name, path: name.split('.'), type: 'boolean' as const })),
    ...numbers.map((name) => ({ name, path: name.split('.'), type: 'number' as const })),
    {
      name: 'secondary.requireExtJwtSigner',
      path: ['secondary', 'requireExtJwtSigner'],
      type: 'string',
    },
  ],
  refuse: { delete: { isSystem: 'CAN_NOT_DELETE_REFERENCED_ENTITY' } },
})

export type AuthPolicy = EntityOf<typeof authPolicy>
