import { defineEntity, type EntityOf } from '../define.ts'
import {
  boolean,
  choice,
  computed,
  constant,
  optionalText,
  reference,
  text,
  texts,
  timestamp,
} from '../fields.ts'
import { shownInEvents, hiddenFromEvents } from '../published.ts'
import { certificateHints } from '../parts/certificate-hints.ts'
import { referenceField } from '../refs.ts'
import { authQueryList, dateTime, flag, text as textShape } from '../shapes.ts'

const whenSet = { shown: 'whenSet' } as const
const hidden = { settable: 'never', shown: 'never' } as const

/**
 * A session of the client or management API. Its token is derived from its id and a cluster key,
 * and is not stored; `token` of the detail is the id.
 */
export const apiSession = defineEntity({
  name: 'apiSession',
  plural: 'apiSessions',
  isPublished: true,
  operations: {},
  fields: shownInEvents({
    identityId: reference('identity', 'cascade', { required: true }),
    authenticatorId: reference('authenticator', 'cascade'),
    /** Third-party CA that vouched for the certificate; deleting the CA ends the session. */
    caId: reference('ca', 'cascade', hidden),
    /** External JWT signer of the token that opened it; deleting the signer ends the session. */
    signerId: reference('externalJwtSigner', 'cascade', hidden),
    /** SHA-1 of the client certificate that opened it, hex; null: opened without one. */
    ...hiddenFromEvents({ certFingerprint: optionalText(hidden) }),
    hasImproperChain: boolean(hidden),
    ipAddress: text({ settable: 'never' }),
    /** API that opened it, which limits its use; '': created before this field existed. */
    api: choice(['client', 'management'], { since: 2, ...hidden }),
    /** OIDC client ('': none), and SHA-256 of the redeemed code, hex. */
    clientId: text({ since: 2, ...hidden }),
    ...hiddenFromEvents({ codeHash: text({ since: 2, ...hidden }) }),
    /** Log time; null once its tokens were used: until then the same code is answered again. */
    ...hiddenFromEvents({ codeRedeemedAt: timestamp({ since: 2, ...hidden }) }),
    /** PEM sent with the log-in ('': none); grants nothing without a certificate. */
    ...hiddenFromEvents({ certificateRequest: text({ since: 2, ...hidden, charactersMax: 4096 }) }),
    configTypes: texts({ settable: 'never' }),
    /** Only moves forward. */
    lastActivityAt: timestamp({ settable: 'never', shown: 'whenSet' }),
    identity: referenceField('identity', 'identityId'),
    token: computed({ from: 'field', field: 'id' }, textShape),
    cachedLastActivityAt: computed({ from: 'field', field: 'lastActivityAt' }, dateTime),
    /** API answers fill this with the requirements of the identity's policy. */
    authQueries: constant([], authQueryList),
    isMfaRequired: constant(false, flag),
    isMfaComplete: boolean({ settable: 'never' }),
    /** Log time of the last correct code in this session; null: none. */
    mfaPassedAt: timestamp(hidden),
    ...certificateHints,
    improperClientCertChain: computed({ from: 'field', field: 'hasImproperChain' }, flag, whenSet),
  }),
  symbols: [
    { name: 'identity', field: 'identityId' },
    { name: 'authenticator', field: 'authenticatorId' },
    'lastActivityAt',
    'ipAddress',
    { name: 'mfaComplete', field: 'isMfaComplete' },
    { name: 'mfaRequired', path: ['isMfaRequired'], type: 'boolean' },
    { name: 'improperClientCertChain', path: ['improperClientCertChain'], type: 'boolean' },
  ],
  links: ['sessions'],
  digest: 'state',
})

export type ApiSession = EntityOf<typeof apiSession>
