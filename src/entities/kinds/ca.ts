import { bodyMemberOfAllWrites } from '../body-members.ts'
import { claimSchema, type ExternalIdClaim, unsetClaim } from '../parts/ca-external-id-claim.ts'
import { crud } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import { attributes, boolean, nameText, object, text } from '../fields.ts'
import { shownInEvents, hiddenFromEvents } from '../published.ts'

/**
 * A third-party certificate authority. After its verification, certificates that it issued may be
 * used to enroll and log in.
 */
export const ca = defineEntity({
  name: 'ca',
  plural: 'cas',
  isPublished: true,
  operations: { management: crud('ca') },
  fields: shownInEvents({
    name: nameText(),
    certPem: text({ required: true, settable: 'create', charactersMax: 65_536 }),
    fingerprint: text({
      settable: 'proposer',
      unique: 'the certificate is already used as a CA',
      faultField: 'certPem',
    }),
    identityNameFormat: text({ otherwise: '[caName]-[commonName]', isPrintable: true }),
    identityRoles: attributes({ required: true, nullIfEmpty: true }),
    isAuthEnabled: boolean({ required: true }),
    isAutoCaEnrollmentEnabled: boolean({ required: true }),
    isOttCaEnrollmentEnabled: boolean({ required: true }),
    isVerified: boolean({ settable: 'never' }),
    ...hiddenFromEvents({
      /**
       * Token that proves control of the CA: its owner issues a certificate with this common name.
       */
      verificationToken: text({
        settable: 'proposer',
        shown: { field: 'isVerified', is: [false] },
      }),
    }),
    externalIdClaim: object<ExternalIdClaim | null>(claimSchema, null, {
      shown: 'whenSet',
      mergedOnto: unsetClaim,
    }),
  }),
  body: {
    identityNameFormat: bodyMemberOfAllWrites({ type: 'string', maxLength: 4096 }, 'replace'),
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
