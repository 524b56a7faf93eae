import type { SecretVersion } from '../../lib/cluster-records.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import { object } from '../fields.ts'

/**
 * A secret of the cluster, wrapped for each controller; what it is stands nowhere in the clear.
 * Served by no API.
 */
export const sharedSecret = defineEntity({
  name: 'sharedSecret',
  plural: 'sharedSecrets',
  isPublished: false,
  operations: {},
  fields: {
    /** Ascending; the last one is in force, those before it only verify. */
    versions: object<readonly SecretVersion[]>({ type: 'array' }, [], {
      settable: 'never',
      shown: 'never',
    }),
  },
  symbols: [],
  digest: 'state',
})

export type SharedSecret = EntityOf<typeof sharedSecret>
