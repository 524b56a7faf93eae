import { defineEntity, type EntityOf } from '../define.ts'
import { boolean, integer, object, reference, text } from '../fields.ts'
import { published, withheld } from '../published.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Maximum characters of one encrypted factor; a secret and its recovery codes take a tenth of it.
 */
export const sealedCharactersMax = 4096

/**
 * The second factor of one identity: time-based one-time codes (RFC 6238) and recovery codes. The
 * id is the identity's, so there is at most one record per identity. Secrets are stored only
 * encrypted.
 */
export const mfa = defineEntity({
  name: 'mfa',
  plural: 'mfas',
  isPublished: true,
  operations: {},
  fields: published({
    identityId: reference('identity', 'cascade', { ...hidden, required: true }),
    /**
     * False until a first correct code proves that the holder has the secret; before that, no
     * session requires codes.
     */
    isVerified: boolean({ settable: 'never' }),
    ...withheld({
      /**
       * New random ids for each secret and each set of recovery codes. A check against an earlier
       * id is void.
       */
      secretId: text(hidden),
      codesId: text(hidden),
      /** Secret and recovery codes, encrypted with version `keyVersion` of the factor key. */
      sealed: text({ ...hidden, charactersMax: sealedCharactersMax }),
      keyVersion: integer(hidden),
      /** The latest accepted time step; codes of it and of earlier steps are refused. */
      lastStep: integer(hidden),
      /** Positions of the used recovery codes, in order of use. */
      usedCodes: object<readonly number[]>({ type: 'array' }, [], hidden),
    }),
  }),
  indexes: ['identityId', 'keyVersion'],
  symbols: [],
  digest: 'state',
})

export type Mfa = EntityOf<typeof mfa>
