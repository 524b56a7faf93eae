import { crud } from './crud.ts'
import { defineEntity } from './define.ts'
import type { EntityOf } from './define.ts'
import {
  boolean,
  choice,
  nameText,
  optionalText,
  reference,
  text,
  texts,
  timestamp,
} from './fields.ts'

const derived = { settable: 'proposer' } as const
const audienceMember = { type: ['string', 'null'], maxLength: 4096 } as const
const urlCharactersMax = 2048

/** What a client may know before it has logged in. */
export const publicSignerFields = {
  name: nameText(),
  audience: text(),
  clientId: text(),
  externalAuthUrl: text({ charactersMax: urlCharactersMax }),
  scopes: texts(),
  targetToken: choice(['ACCESS', 'ID'], { otherwise: 'ACCESS' }),
  enrollToCertEnabled: boolean({ shown: 'whenSet' }),
  enrollToTokenEnabled: boolean({ shown: 'whenSet' }),
} as const

/** Somebody else whose tokens are taken for a log-in: by one certificate, or by the keys that an address serves. */
export const externalJwtSigner = defineEntity({
  name: 'externalJwtSigner',
  plural: 'externalJwtSigners',
  operations: { management: crud('external-jwt-signer') },
  fields: {
    ...publicSignerFields,
    enabled: boolean({ required: true }),
    issuer: text({ required: true, unique: 'issuer must be unique' }),
    certPem: optionalText({ charactersMax: 65_536 }),
    jwksEndpoint: optionalText({ charactersMax: urlCharactersMax }),
    kid: text({ unique: 'kid must be unique' }),
    claimsProperty: text({ otherwise: '/sub' }),
    useExternalId: boolean(),
    enrollAuthPolicyId: reference('authPolicy', 'refuse', { otherwise: 'default' }),
    enrollNameClaimsSelector: text({ otherwise: '/sub' }),
    enrollAttributeClaimsSelector: text({ shown: 'whenSet' }),
    commonName: text(derived),
    fingerprint: text({ ...derived, unique: 'fingerprint must be unique' }),
    notBefore: timestamp(derived),
    notAfter: timestamp(derived),
  },
  body: {
    audience: {
      schema: audienceMember,
      in: ['create', 'replace', 'patch'],
      requiredIn: ['create', 'replace'],
    },
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
