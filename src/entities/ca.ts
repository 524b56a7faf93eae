import type { Json } from '../lib/canonical-json.ts'
import { crud } from './crud.ts'
import { defineEntity } from './define.ts'
import type { EntityOf } from './define.ts'
import { attributes, boolean, nameText, object, text } from './fields.ts'

const locations = ['COMMON_NAME', 'SAN_URI', 'SAN_EMAIL'] as const
const matchers = ['ALL', 'PREFIX', 'SUFFIX', 'SCHEME'] as const
const parsers = ['NONE', 'SPLIT'] as const

/** Where in a client certificate the external id of its holder stands. */
export interface ExternalIdClaim {
  readonly index: number
  readonly location: (typeof locations)[number]
  readonly matcher: (typeof matchers)[number]
  readonly matcherCriteria: string
  readonly parser: (typeof parsers)[number]
  readonly parserCriteria: string
}

const claimSchema = {
  type: 'object',
  properties: {
    index: { type: 'integer', maximum: 1_000_000 },
    location: { type: 'string', enum: locations },
    matcher: { type: 'string', enum: matchers },
    matcherCriteria: { type: 'string', maxLength: 4096 },
    parser: { type: 'string', enum: parsers },
    parserCriteria: { type: 'string', maxLength: 4096 },
  },
  required: ['index', 'location', 'matcher', 'matcherCriteria', 'parser', 'parserCriteria'],
} as const

/** What a patch begins with where no claim is stored; it says nothing yet about the location. */
const noClaim = {
  index: 0,
  location: '',
  matcher: 'ALL',
  matcherCriteria: '',
  parser: 'NONE',
  parserCriteria: '',
} as const

/** Somebody else's certificate authority whose certificates may enroll and log in, once it is verified. */
export const ca = defineEntity({
  name: 'ca',
  plural: 'cas',
  operations: { management: crud('ca') },
  fields: {
    name: nameText(),
    certPem: text({ required: true, settable: 'create', charactersMax: 65_536 }),
    fingerprint: text({
      settable: 'proposer',
      unique: 'the certificate is already used as a CA',
      faultField: 'certPem',
    }),
    identityNameFormat: text({ otherwise: '[caName]-[commonName]' }),
    identityRoles: attributes({ required: true }),
    isAuthEnabled: boolean({ required: true }),
    isAutoCaEnrollmentEnabled: boolean({ required: true }),
    isOttCaEnrollmentEnabled: boolean({ required: true }),
    isVerified: boolean({ settable: 'never' }),
    /** The common name of the certificate that proves the CA to be at its owner's hand. */
    verificationToken: text({ settable: 'proposer', shown: { field: 'isVerified', is: [false] } }),
    externalIdClaim: object<Json & (ExternalIdClaim | null)>(claimSchema, null, {
      shown: 'whenSet',
      mergedOnto: noClaim,
    }),
  },
  body: {
    identityNameFormat: {
      schema: { type: 'string', maxLength: 4096 },
      in: ['create', 'replace', 'patch'],
      requiredIn: ['replace'],
    },
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
