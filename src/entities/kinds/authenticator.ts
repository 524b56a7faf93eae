import { bodyMemberForCreate, bodyMemberForAllWrites } from '../body-members.ts'
import { managementCrudPermissions } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import {
  booleanField,
  choiceField,
  optionalTextField,
  idReferenceField,
  timestampField,
} from '../fields.ts'
import { markShownInEvents, markHiddenFromEvents } from '../event-visibility.ts'
import { referenceField } from '../reference-fields.ts'

/** Length limits of user names and passwords in characters, at log-in and when they are set. */
export const usernameSchema = { type: 'string', minLength: 4, maxLength: 100 } as const
export const passwordSchema = { type: 'string', minLength: 5, maxLength: 100 } as const

const hidden = { settable: 'never', shown: 'never' } as const
const hint = { settable: 'never', shown: 'whenSet' } as const
const made = { settable: 'proposer', shown: 'whenSet' } as const

/** A credential of an identity: user name and password hash, or a certificate. */
export const authenticator = defineEntity({
  name: 'authenticator',
  plural: 'authenticators',
  isPublished: true,
  operations: {
    management: managementCrudPermissions('authenticator'),
  },
  fields: markShownInEvents({
    method: choiceField(['updb', 'cert'], { required: true, settable: 'create' }),
    identityId: idReferenceField('identity', 'cascade', { required: true, settable: 'create' }),
    username: optionalTextField({ ...made, unique: 'username must be unique' }),
    /** PHC string, e.g. `$argon2id$v=19$...`; never shown. */
    ...markHiddenFromEvents({
      passwordHash: optionalTextField({ settable: 'proposer', shown: 'never' }),
    }),
    certPem: optionalTextField({ ...made, charactersMax: 65_536 }),
    /**
     * SHA-1 of the DER certificate, lowercase hex. Used to find the record; `certPem` is then
     * compared.
     */
    fingerprint: optionalTextField({ ...made, unique: 'fingerprint must be unique' }),
    /** SHA-256 of the certificate's public key, lowercase hex. */
    ...markHiddenFromEvents({
      publicKeyPrint: optionalTextField({ settable: 'proposer', shown: 'never' }),
    }),
    /**
     * The third-party CA that issued the certificate; '' if no such CA issued it. Deleting the CA
     * deletes the authenticator.
     */
    caId: idReferenceField('ca', 'cascade', { settable: 'proposer', shown: 'never' }),
    /** SHA-1 of a migrated certificate; the certificate itself is stored at its first log-in. */
    adoptableFingerprint: optionalTextField({ ...made, since: 3 }),
    ...markHiddenFromEvents({
      /**
       * SHA-256 of the one-time token that created the authenticator, hex. A repeated enrollment
       * with this token and the same key gets the same response.
       */
      enrolledBy: optionalTextField({ ...hidden, unique: 'a token is used once' }),
      /** Certificate that replaces `certPem` once its holder has used it. */
      nextCertPem: optionalTextField({ ...hidden, charactersMax: 65_536 }),
      nextFingerprint: optionalTextField(hidden),
      nextPublicKeyPrint: optionalTextField(hidden),
    }),
    extendRequestedAt: timestampField(hint),
    isExtendRequested: booleanField(hint),
    isIssuedByNetwork: booleanField(hint),
    isKeyRollRequested: booleanField(hint),
    lastAuthResolvedToRoot: booleanField(hint),
    lastExtendRolledKeys: booleanField(hint),
    identity: referenceField('identity', 'identityId'),
  }),
  body: {
    certPem: bodyMemberForCreate({ type: 'string', maxLength: 65_536 }, 'optional'),
    password: bodyMemberForAllWrites(passwordSchema, 'replace'),
    username: bodyMemberForAllWrites(usernameSchema, 'replace'),
  },
  symbols: [
    'method',
    { name: 'identity', field: 'identityId' },
    { name: 'certFingerprint', field: 'fingerprint' },
    'certPem',
    'publicKeyPrint',
    'isIssuedByNetwork',
    'isExtendRequested',
    'isKeyRollRequested',
    'extendRequestedAt',
    'lastAuthResolvedToRoot',
    'lastExtendRolledKeys',
    { name: 'updbUsername', field: 'username' },
  ],
  links: [{ key: 'identities', field: 'identityId', collection: 'identities' }],
  digest: 'state',
})

export type Authenticator = EntityOf<typeof authenticator>
