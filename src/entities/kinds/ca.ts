import { bodyMemberForAllWrites } from '../body-members.ts'
import {
  externalIdClaimSchema,
  type ExternalIdClaim,
  unsetExternalIdClaim,
} from '../parts/ca-external-id-claim.ts'
import { managementCrudPermissions } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import { roleAttributesField, booleanField, nameField, objectField, textField } from '../fields.ts'
import { markShownInEvents, markHiddenFromEvents } from '../event-visibility.ts'

/**
 * A third-party certificate authority. After its verification, certificates that it issued may be
 * used to enroll and log in, as far as its flags permit.
 */
export const ca = defineEntity({
  name: 'ca',
  plural: 'cas',
  isPublished: true,
  operations: { management: managementCrudPermissions('ca') },
  fields: markShownInEvents({
    name: nameField(),
    certPem: textField({ required: true, settable: 'create', charactersMax: 65_536 }),
    fingerprint: textField({
      settable: 'proposer',
      unique: 'the certificate is already used as a CA',
      faultField: 'certPem',
    }),
    identityNameFormat: textField({ otherwise: '[caName]-[commonName]', isPrintable: true }),
    identityRoles: roleAttributesField({ required: true, nullIfEmpty: true }),
    isAuthEnabled: booleanField({ required: true }),
    isAutoCaEnrollmentEnabled: booleanField({ required: true }),
    isOttCaEnrollmentEnabled: booleanField({ required: true }),
    isVerified: booleanField({ settable: 'never' }),
    ...markHiddenFromEvents({
      /**
       * Token that proves control of the CA: its owner proves control by issuing a certificate with
       * the token as common name.
       */
      verificationToken: textField({
        settable: 'proposer',
        shown: { field: 'isVerified', is: [false] },
      }),
    }),
    externalIdClaim: objectField<ExternalIdClaim | null>(externalIdClaimSchema, null, {
      shown: 'whenSet',
      mergedOnto: unsetExternalIdClaim,
    }),
  }),
  body: {
    identityNameFormat: bodyMemberForAllWrites({ type: 'string', maxLength: 4096 }, 'replace'),
  },
  indexes: ['isVerified'],
  symbols: [
    'name',
    'fingerprint',
    'isVerified',
    'verificationToken',
    'isAutoCaEnrollmentEnabled',
    'isOttCaEnrollmentEnabled',
    'isAuthEnabled',
  ],
  links: [
    { key: 'verify', when: { field: 'isVerified', is: [false] } },
    { key: 'jwt', when: { field: 'isAutoCaEnrollmentEnabled', is: [true] } },
  ],
})

export type Ca = EntityOf<typeof ca>
