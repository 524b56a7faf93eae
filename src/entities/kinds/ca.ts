import { everyBodyMember } from '../body-members.ts'
import { claimSchema, type ExternalIdClaim, unsetClaim } from '../parts/ca-external-id-claim.ts'
import { crud } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import { attributes, boolean, nameText, object, text } from '../fields.ts'
import { published, withheld } from '../published.ts'

/**
 * A third-party certificate authority. Its certificates may enroll and log in once it is verified.
 */
export const ca = defineEntity({
  name: 'ca',
  plural: 'cas',
  isPublished: true,
  operations: { management: crud('ca') },
  fields: published({
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
    ...withheld({
      /** Common name of the certificate by which the owner proves control of the CA. */
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
    identityNameFormat: everyBodyMember({ type: 'string', maxLength: 4096 }, 'replace'),
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
