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
import { published, withheld } from '../published.ts'
import { certificateHints } from '../parts/certificate-hints.ts'
import { refOf } from '../refs.ts'
import { authQueryList, dateTime, flag, text as textShape } from '../shapes.ts'

const whenSet = { shown: 'whenSet' } as const
const hidden = { settable: 'never', shown: 'never' } as const

/**
 * A session of the client or management API. Its token is derived from its id and a key of the
 * cluster, and stored nowhere; `token` of the detail is the id.
 */
export const apiSession = defineEntity({
  name: 'apiSession',
  plural: 'apiSessions',
  isPublished: true,
  operations: {},
  fields: published({
    identityId: reference('identity', 'cascade', { required: true }),
    authenticatorId: reference('authenticator', 'cascade'),
    /** Another's CA that said at log-in who holds the certificate; its sessions end with it. */
    caId: reference('ca', 'cascade', hidden),
    /** External JWT signer whose token it was opened by; its sessions end with it. */
    signerId: reference('externalJwtSigner', 'cascade', hidden),
    /** SHA-1 of the client certificate that it was opened by, hex; null: by something else. */
    ...withheld({ certFingerprint: optionalText(hidden) }),
    hasImproperChain: boolean(hidden),
    ipAddress: text({ settable: 'never' }),
    /** That it was opened at, which says what it is good for; '': from before the field. */
    api: choice(['client', 'management'], { since: 2, ...hidden }),
    /** Client of OIDC ('': none), and SHA-256 of the code that it redeemed, hex. */
    clientId: text({ since: 2, ...hidden }),
    ...withheld({ codeHash: text({ since: 2, ...hidden }) }),
    /** Log time; null once its tokens were used: the same code is answered again only before. */
    ...withheld({ codeRedeemedAt: timestamp({ since: 2, ...hidden }) }),
    /** PEM that came with its log-in ('': none): worth nothing without a certificate. */
    ...withheld({ certificateRequest: text({ since: 2, ...hidden, charactersMax: 4096 }) }),
    configTypes: texts({ settable: 'never' }),
    /** Only moves forward. */
    lastActivityAt: timestamp({ settable: 'never', shown: 'whenSet' }),
    identity: refOf('identity', 'identityId'),
    token: computed({ from: 'field', field: 'id' }, textShape),
    cachedLastActivityAt: computed({ from: 'field', field: 'lastActivityAt' }, dateTime),
    /** Answers about sessions put here what the policy of the identity asks for. */
    authQueries: constant([], authQueryList),
    isMfaRequired: constant(false, flag),
    isMfaComplete: boolean({ settable: 'never' }),
    /** Log time of the last code that was right; null: none was given in this session. */
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
