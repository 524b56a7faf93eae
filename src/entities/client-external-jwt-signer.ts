import { defineEntity } from './define.ts'
import { publicSignerFields } from './external-jwt-signer.ts'
import { computed } from './fields.ts'
import { text } from './shapes.ts'

/** Those in force, as clients find them before they log in. Filters reach no further than what is shown. */
export const clientExternalJwtSigner = defineEntity({
  name: 'clientExternalJwtSigner',
  plural: 'clientExternalJwtSigners',
  collection: 'external-jwt-signers',
  table: 'externalJwtSigner',
  scope: { field: 'enabled', value: true },
  operations: {},
  fields: {
    ...publicSignerFields,
    /** Not kept: clients find it below `externalAuthUrl`. */
    openIdConfigurationUrl: computed({ from: 'constant', value: '' }, text, {
      shown: 'whenSet',
    }),
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
