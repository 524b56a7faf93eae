import { defineEntity, type EntityOf } from '../define-entity.ts'
import {
  boolean,
  choice,
  computedField,
  constantField,
  optionalTextField,
  idReferenceField,
  text,
  texts,
  timestampField,
} from '../fields.ts'
import { markShownInEvents, markHiddenFromEvents } from '../event-visibility.ts'
import { certificateHints } from '../parts/certificate-hints.ts'
import { referenceField } from '../reference-fields.ts'
import {
  authQueryListSchema,
  dateTimeSchema,
  booleanSchema,
  text as textShape,
} from '../response-schemas.ts'

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
  fields: markShownInEvents({
    identityId: idReferenceField('identity', 'cascade', { required: true }),
    authenticatorId: idReferenceField('authenticator', 'cascade'),
    /** Third-party CA that vouched for the certificate; deleting the CA ends the session. */
    caId: idReferenceField('ca', 'cascade', hidden),
    /** External JWT signer of the token that opened it; deleting the signer ends the session. */
    signerId: idReferenceField('externalJwtSigner', 'cascade', hidden),
    /** SHA-1 of the client certificate that opened it, hex; null: opened without one. */
    ...markHiddenFromEvents({ certFingerprint: optionalTextField(hidden) }),
    hasImproperChain: boolean(hidden),
    ipAddress: text({ settable: 'never' }),
    /** API that opened it, which limits its use; '': created before this field existed. */
    api: choice(['client', 'management'], { since: 2, ...hidden }),
    /** OIDC client ('': none), and SHA-256 of the redeemed code, hex. */
    clientId: text({ since: 2, ...hidden }),
    ...markHiddenFromEvents({ codeHash: text({ since: 2, ...hidden }) }),
    /** Log time; null once its tokens were used: until then the same code is answered again. */
    ...markHiddenFromEvents({ codeRedeemedAt: timestampField({ since: 2, ...hidden }) }),
    /** PEM sent with the log-in ('': none); grants nothing without a certificate. */
    ...markHiddenFromEvents({
      certificateRequest: text({ since: 2, ...hidden, charactersMax: 4096 }),
    }),
    configTypes: texts({ settable: 'never' }),
    /** Only moves forward. */
    lastActivityAt: timestampField({ settable: 'never', shown: 'whenSet' }),
    identity: referenceField('identity', 'identityId'),
    token: computedField({ from: 'field', field: 'id' }, textShape),
    cachedLastActivityAt: computedField({ from: 'field', field: 'lastActivityAt' }, dateTimeSchema),
    /** API answers fill this with the requirements of the identity's policy. */
    authQueries: constantField([], authQueryListSchema),
    isMfaRequired: constantField(false, booleanSchema),
    isMfaComplete: boolean({ settable: 'never' }),
    /** Log time of the last correct code in this session; null: none. */
    mfaPassedAt: timestampField(hidden),
    ...certificateHints,
    improperClientCertChain: computedField(
      { from: 'field', field: 'hasImproperChain' },
      booleanSchema,
      whenSet,
    ),
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
