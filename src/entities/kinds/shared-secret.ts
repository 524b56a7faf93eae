import type { SecretVersion } from '../../lib/shared-secrets.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import { objectField } from '../fields.ts'

/**
 * A secret that all controllers share. The secret is stored only in encrypted form, once for each
 * controller. No API serves it.
 */
export const sharedSecret = defineEntity({
  name: 'sharedSecret',
  plural: 'sharedSecrets',
  isPublished: false,
  operations: {},
  fields: {
    /**
     * The versions that are kept, in ascending order. The last version is current; the others are
     * only used to verify or decrypt.
     */
    versions: objectField<readonly SecretVersion[]>({ type: 'array' }, [], {
      settable: 'never',
      shown: 'never',
    }),
  },
  symbols: [],
  digest: 'state',
})

export type SharedSecret = EntityOf<typeof sharedSecret>
