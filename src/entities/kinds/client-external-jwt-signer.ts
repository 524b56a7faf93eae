import { defineEntity } from '../define-entity.ts'
import {
  booleanField,
  choiceField,
  constantField,
  nameField,
  textField,
  textListField,
} from '../fields.ts'
import * as shapes from '../response-schemas.ts'

export const urlCharactersMax = 2048

/** Fields of an external JWT signer that a client may see before it logs in. */
export const publicSignerFields = {
  name: nameField(),
  audience: textField(),
  clientId: textField({ nullIfEmpty: true }),
  externalAuthUrl: textField({
    charactersMax: urlCharactersMax,
    nullIfEmpty: true,
  }),
  scopes: textListField({ nullIfEmpty: true }),
  targetToken: choiceField(['ACCESS', 'ID'], { otherwise: 'ACCESS' }),
  enrollToCertEnabled: booleanField({ shown: 'whenSet' }),
  enrollToTokenEnabled: booleanField({ shown: 'whenSet' }),
} as const

/**
 * Enabled external JWT signers, as clients see them before they log in. Filters can use only
 * visible fields.
 */
export const clientExternalJwtSigner = defineEntity({
  name: 'clientExternalJwtSigner',
  plural: 'clientExternalJwtSigners',
  collection: 'external-jwt-signers',
  table: 'externalJwtSigner',
  scope: { field: 'enabled', value: true },
  operations: {},
  fields: {
    ...publicSignerFields,
    /** Not stored and always empty; clients derive the URL from `externalAuthUrl`. */
    openIdConfigurationUrl: constantField('', shapes.textSchema, { shown: 'whenSet' }),
  },
  symbols: [
    'name',
    'audience',
    'clientId',
    'externalAuthUrl',
    'scopes',
    'targetToken',
    'enrollToCertEnabled',
    'enrollToTokenEnabled',
  ],
})
