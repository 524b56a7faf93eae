import { bodyMemberForAllWrites } from '../body-members.ts'
import { publicSignerFields, urlCharactersMax } from './client-external-jwt-signer.ts'
import { managementCrudPermissions } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import {
  booleanField,
  optionalTextField,
  idReferenceField,
  textField,
  timestampField,
} from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'

const { enrollToCertEnabled, enrollToTokenEnabled, ...first } = publicSignerFields
const derived = { settable: 'proposer' } as const
const audienceMember = { type: ['string', 'null'], maxLength: 4096 } as const

/**
 * A third party whose tokens are accepted, while the signer is enabled, for log-in, as a second
 * factor and for enrollment. Tokens are verified with one certificate or with the keys at a JWKS
 * address.
 */
export const externalJwtSigner = defineEntity({
  name: 'externalJwtSigner',
  plural: 'externalJwtSigners',
  isPublished: true,
  operations: { management: managementCrudPermissions('external-jwt-signer') },
  fields: markShownInEvents({
    ...first,
    enabled: booleanField({ required: true }),
    enrollToCertEnabled,
    enrollToTokenEnabled,
    // @guard forged-tokens--twins
    issuer: textField({ required: true, unique: 'issuer must be unique' }),
    certPem: optionalTextField({ charactersMax: 65_536 }),
    jwksEndpoint: optionalTextField({ charactersMax: urlCharactersMax }),
    kid: textField({ unique: 'kid must be unique', nullIfEmpty: true }),
    claimsProperty: textField({ otherwise: '/sub' }),
    useExternalId: booleanField(),
    enrollAuthPolicyId: idReferenceField('authPolicy', 'refuse', { otherwise: 'default' }),
    enrollNameClaimsSelector: textField({ otherwise: '/sub' }),
    enrollAttributeClaimsSelector: textField({ shown: 'whenSet' }),
    commonName: textField(derived),
    fingerprint: textField({
      ...derived,
      unique: 'fingerprint must be unique',
      nullIfEmpty: true,
    }),
    notBefore: timestampField(derived),
    notAfter: timestampField(derived),
  }),
  body: {
    audience: bodyMemberForAllWrites(audienceMember, 'create', 'replace'),
  },
  indexes: ['enabled'],
  symbols: [
    'name',
    'fingerprint',
    'kid',
    'issuer',
    'certPem',
    'commonName',
    'notAfter',
    'notBefore',
    'enabled',
    'claimsProperty',
    'useExternalId',
    'audience',
    'clientId',
    'scopes',
    'targetToken',
    'enrollToCertEnabled',
    'enrollToTokenEnabled',
    'enrollAttributeClaimsSelector',
    'enrollNameClaimsSelector',
    'enrollAuthPolicyId',
  ],
})

export type ExternalJwtSigner = EntityOf<typeof externalJwtSigner>
