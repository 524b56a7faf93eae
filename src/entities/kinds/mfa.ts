import { defineEntity, type EntityOf } from '../define-entity.ts'
import { booleanField, integerField, objectField, idReferenceField, textField } from '../fields.ts'
import { markShownInEvents, markHiddenFromEvents } from '../event-visibility.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Maximum characters of one encrypted factor; a secret with its recovery codes needs a tenth of
 * that.
 */
export const encryptedFactorCharactersMax = 4096

/**
 * The second factor of one identity: time-based one-time codes (RFC 6238) and recovery codes. The
 * record's id is the identity's id, so there is at most one record per identity. Secrets are stored
 * only encrypted.
 */
export const mfa = defineEntity({
  name: 'mfa',
  plural: 'mfas',
  isPublished: true,
  operations: {},
  fields: markShownInEvents({
    identityId: idReferenceField('identity', 'cascade', { ...hidden, required: true }),
    /**
     * False until a first correct code proves that the user has the secret; until then, no session
     * requires codes.
     */
    isVerified: booleanField({ settable: 'never' }),
    ...markHiddenFromEvents({
      /**
       * `secretId` is a new random id for each new secret, and `codesId` for each new set of
       * recovery codes. The result of a code check that used an earlier id is void.
       */
      secretId: textField(hidden),
      codesId: textField(hidden),
      /** Secret and recovery codes, encrypted with version `keyVersion` of the factor key. */
      sealed: textField({ ...hidden, charactersMax: encryptedFactorCharactersMax }),
      keyVersion: integerField(hidden),
      /** The latest accepted time step; codes of this step and of earlier steps are refused. */
      lastStep: integerField(hidden),
      /**
       * The session that passed the second factor with the code of `lastStep`; empty if that code
       * was used for another purpose since.
       */
      stepSessionId: textField({ ...hidden, since: 3 }),
      /** Positions of the used recovery codes, in order of use. */
      usedCodes: objectField<readonly number[]>({ type: 'array' }, [], hidden),
    }),
  }),
  indexes: ['identityId', 'keyVersion'],
  symbols: [],
  digest: 'state',
})

export type Mfa = EntityOf<typeof mfa>
