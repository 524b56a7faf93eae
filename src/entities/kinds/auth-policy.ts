import {
  openPrimary,
  openSecondary,
  type PrimaryRules,
  primarySchema,
  type SecondaryRules,
  secondarySchema,
} from '../parts/auth-policy-factors.ts'
import { crud } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import { boolean, nameText, object, references } from '../fields.ts'

type JsonOf<T> = T & Readonly<Record<string, never>>

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

/** Authentication policy of the identities that reference it. */
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
    /**
     * Copied from the nested lists on each write, so that signers are indexed by the policies that
     * reference them.
     */
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
