import { bodyMemberForAllWrites } from '../body-members.ts'
import {
  externalIdClaimSchema,
  type ExternalIdClaim,
  unsetExternalIdClaim,
} from '../parts/ca-external-id-claim.ts'
import { managementCrudPermissions } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import { roleAttributesField, boolean, nameField, objectField, text } from '../fields.ts'
import { markShownInEvents, markHiddenFromEvents } from '../event-visibility.ts'

/**
 * A third-party certificate authority. After its verification, certificates that it issued may be
 * used to enroll and log in.
 */
export const ca = defineEntity({
  name: 'ca',
  plural: 'cas',
  isPublished: true,
  operations: { management: managementCrudPermissions('ca') },
  fields: markShownInEvents({
    name: nameField(),
    certPem: text({ required: true, settable: 'create', charactersMax: 65_536 }),
    fingerprint: text({
      settable: 'proposer',
      unique: 'the certificate is already used as a CA',
      faultField: 'certPem',
    }),
    identityNameFormat: text({ otherwise: '[caName]-[commonName]', isPrintable: true }),
    identityRoles: roleAttributesField({ required: true, nullIfEmpty: true }),
    isAuthEnabled: boolean({ required: true }),
    isAutoCaEnrollmentEnabled: boolean({ required: true }),
    isOttCaEnrollmentEnabled: boolean({ required: true }),
    isVerified: boolean({ settable: 'never' }),
    ...markHiddenFromEvents({
      /**
       * Token that proves control of the CA: its owner proves control by issuing a certificate with
       * the token as common name.
       */
      verificationToken: text({
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
