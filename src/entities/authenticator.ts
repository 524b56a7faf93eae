import { atCreate, inEveryBody } from './body-members.ts'
import { crud } from './crud.ts'
import { defineEntity } from './define.ts'
import type { EntityOf } from './define.ts'
import { boolean, choice, optionalText, reference, timestamp } from './fields.ts'
import { refOf } from './refs.ts'

/** Bounds of user names and passwords, in characters, at log-in and wherever they are set. */
export const usernameSchema = { type: 'string', minLength: 4, maxLength: 100 } as const
export const passwordSchema = { type: 'string', minLength: 5, maxLength: 100 } as const

const hint = { settable: 'never', shown: 'whenSet' } as const
const made = { settable: 'proposer', shown: 'whenSet' } as const

/** A credential of an identity: user name and password hash, or a certificate. */
export const authenticator = defineEntity({
  name: 'authenticator',
  plural: 'authenticators',
  operations: {
    management: crud('authenticator'),
  },
  fields: {
    method: choice(['updb', 'cert'], { required: true, settable: 'create' }),
    identityId: reference('identity', 'cascade', { required: true, settable: 'create' }),
    username: optionalText({ ...made, unique: 'username must be unique' }),
    /** PHC string, e.g. `$argon2id$v=19$...`; never shown. */
    passwordHash: optionalText({ settable: 'proposer', shown: 'never' }),
    certPem: optionalText({ ...made, charactersMax: 65_536 }),
    /** SHA-1 of the certificate in DER, lower-case hex: it leads to the record, `certPem` proves it. */
    fingerprint: optionalText({ ...made, unique: 'fingerprint must be unique' }),
    /** SHA-256 of its public key, lower-case hex. */
    publicKeyPrint: optionalText({ settable: 'proposer', shown: 'never' }),
    /** The CA of somebody else that issued the certificate; it takes the authenticator along when it is deleted. */
    caId: reference('ca', 'cascade', { settable: 'proposer', shown: 'never' }),
    /** SHA-256 of the one-time token that it was enrolled by, hex: who lost the answer and asks again gets it again. */
    enrolledBy: optionalText({ settable: 'never', shown: 'never', unique: 'a token is used once' }),
    /** A certificate that takes the place of `certPem` once its holder has shown that it has it. */
    nextCertPem: optionalText({ settable: 'never', shown: 'never', charactersMax: 65_536 }),
    nextFingerprint: optionalText({ settable: 'never', shown: 'never' }),
    nextPublicKeyPrint: optionalText({ settable: 'never', shown: 'never' }),
    extendRequestedAt: timestamp(hint),
    isExtendRequested: boolean(hint),
    isIssuedByNetwork: boolean(hint),
    isKeyRollRequested: boolean(hint),
    lastAuthResolvedToRoot: boolean(hint),
    lastExtendRolledKeys: boolean(hint),
    identity: refOf('identity', 'identityId'),
  },
  body: {
    certPem: atCreate({ type: 'string', maxLength: 65_536 }, 'optional'),
    password: inEveryBody(passwordSchema, 'replace'),
    username: inEveryBody(usernameSchema, 'replace'),
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
