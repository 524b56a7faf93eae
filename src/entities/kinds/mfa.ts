import { defineEntity, type EntityOf } from '../define.ts'
import { boolean, integer, object, reference, text } from '../fields.ts'
import { published, withheld } from '../published.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/** Characters of one sealed factor; a secret and its recovery codes take a tenth of it. */
export const sealedCharactersMax = 4096

/**
 * The second factor of one identity: time-based one-time codes (RFC 6238) and recovery codes. The
 * id is the identity's, so there is at most one record for each; what is secret of it stands here
 * only encrypted.
 */
export const mfa = defineEntity({
  name: 'mfa',
  plural: 'mfas',
  isPublished: true,
  operations: {},
  fields: published({
    identityId: reference('identity', 'cascade', { ...hidden, required: true }),
    /**
     * False until a first code has shown that its holder has the secret: no session is asked for
     * codes before.
     */
    isVerified: boolean({ settable: 'never' }),
    ...withheld({
      /**
       * Drawn with the secret, and with each set of recovery codes: what was judged on others
       * counts no more.
       */
      secretId: text(hidden),
      codesId: text(hidden),
      /** Secret and recovery codes, encrypted by that version of the factor key. */
      sealed: text({ ...hidden, charactersMax: sealedCharactersMax }),
      keyVersion: integer(hidden),
      /**
       * The latest time step whose code was accepted; neither it nor an earlier one is accepted
       * again.
       */
      lastStep: integer(hidden),
      /** Positions of the recovery codes that were used, in the order of their use. */
      usedCodes: object<readonly number[]>({ type: 'array' }, [], hidden),
    }),
  }),
  indexes: ['identityId', 'keyVersion'],
  symbols: [],
  digest: 'state',
})

export type Mfa = EntityOf<typeof mfa>
