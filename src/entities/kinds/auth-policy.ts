import {
  permissivePrimaryRules,
  permissiveSecondaryRules,
  primaryRulesSchema,
  secondaryRulesSchema,
} from '../parts/auth-policy-factors.ts'
import { managementCrudPermissions } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import { booleanField, nameField, objectField, idReferencesField } from '../fields.ts'
import { markShownInEvents, markHiddenFromEvents } from '../event-visibility.ts'

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

/** Authentication policy for the identities that reference it. */
export const authPolicy = defineEntity({
  name: 'authPolicy',
  plural: 'authPolicies',
  isPublished: true,
  operations: { management: managementCrudPermissions('auth-policy') },
  fields: markShownInEvents({
    name: nameField(),
    primary: objectField(primaryRulesSchema, permissivePrimaryRules, {
      required: true,
      mergedOnto: permissivePrimaryRules,
    }),
    secondary: objectField(secondaryRulesSchema, permissiveSecondaryRules, {
      required: true,
      mergedOnto: permissiveSecondaryRules,
    }),
    ...markHiddenFromEvents({
      /**
       * Ids of the signers that `primary` allows, and below those that `secondary` requires. Both
       * are derived on each write, so that an index finds the policies that reference a signer.
       */
      allowedSignerIds: idReferencesField('externalJwtSigner', 'refuse', {
        settable: 'never',
        shown: 'never',
        faultField: 'primary.extJwt.allowedSigners',
      }),
      requiredSignerIds: idReferencesField('externalJwtSigner', 'refuse', {
        settable: 'never',
        shown: 'never',
        faultField: 'secondary.requireExtJwtSigner',
      }),
    }),
    isSystem: booleanField({ settable: 'never', shown: 'never' }),
  }),
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
