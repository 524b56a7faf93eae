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
     * False until a first correct code proves that the user has the secret; until then, the factor
     * counts as missing.
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
      /**
       * Codes of this time step and of earlier steps are refused, except that the session
       * `stepSessionId` may repeat the code of this step. It is the step of the last used
       * time-based code, or the step before if that code verified the factor, because clients log
       * in with the same code.
       */
      lastStep: integerField(hidden),
      /**
       * The session that passed the second factor with the code of `lastStep`; empty if another use
       * of a code, even of a recovery code, came last.
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
