import { defineEntity } from './define.ts'
import type { EntityOf } from './define.ts'
import { boolean, choice, computed, optionalText, reference, timestamp } from './fields.ts'
import { entityRef } from './shapes.ts'

const hint = { settable: 'never', shown: 'whenSet' } as const

/** A credential of an identity: user name and password hash, or a certificate. */
export const authenticator = defineEntity({
  name: 'authenticator',
  plural: 'authenticators',
  operations: {},
  fields: {
    method: choice(['updb', 'cert'], { required: true }),
    identityId: reference('identity', 'cascade', { required: true }),
    username: optionalText({ shown: 'whenSet', unique: 'username must be unique' }),
    /** PHC string, e.g. `$argon2id$v=19$...`; never shown. */
    passwordHash: optionalText({ settable: 'never', shown: 'never' }),
    certPem: optionalText({ shown: 'whenSet', charactersMax: 65_536 }),
    fingerprint: optionalText({ ...hint, unique: 'fingerprint must be unique' }),
    publicKeyPrint: optionalText({ settable: 'never', shown: 'never' }),
    extendRequestedAt: timestamp(hint),
    isExtendRequested: boolean(hint),
    isIssuedByNetwork: boolean(hint),
    isKeyRollRequested: boolean(hint),
    lastAuthResolvedToRoot: boolean(hint),
    lastExtendRolledKeys: boolean(hint),
    identity: computed({ from: 'entityRef', to: 'identity', by: 'identityId' }, entityRef),
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
