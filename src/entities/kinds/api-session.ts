import { defineEntity, type EntityOf } from '../define-entity.ts'
import {
  booleanField,
  choiceField,
  computedField,
  constantField,
  optionalTextField,
  idReferenceField,
  textField,
  textListField,
  timestampField,
} from '../fields.ts'
import { markShownInEvents, markHiddenFromEvents } from '../event-visibility.ts'
import { certificateRenewalFields } from '../parts/certificate-renewal-fields.ts'
import { referenceField } from '../reference-fields.ts'
import {
  authQueryListSchema,
  dateTimeSchema,
  booleanSchema,
  textSchema as textShape,
} from '../response-schemas.ts'

const whenSet = { shown: 'whenSet' } as const
const hidden = { settable: 'never', shown: 'never' } as const

/**
 * A session of the client or management API. The session's token is not stored: it is derived from
 * the session's id and a cluster key, or is a signed JWT if the session was opened with OIDC. The
 * field `token` in the detail is the id.
 */
export const apiSession = defineEntity({
  name: 'apiSession',
  plural: 'apiSessions',
  isPublished: true,
  operations: {},
  fields: markShownInEvents({
    identityId: idReferenceField('identity', 'cascade', { required: true }),
    authenticatorId: idReferenceField('authenticator', 'cascade'),
    /**
     * Third-party CA whose external ID claim identified the identity at log-in; '' for every other
     * log-in. Deleting the CA ends the session.
     */
    caId: idReferenceField('ca', 'cascade', hidden),
    /**
     * External JWT signer of the token that opened the session; '' if no such token opened it.
     * Deleting the signer ends the session.
     */
    signerId: idReferenceField('externalJwtSigner', 'cascade', hidden),
    /**
     * SHA-1 of the client certificate that opened the session, or that has replaced this
     * certificate since, in hex; null if the log-in used no certificate.
     */
    ...markHiddenFromEvents({ certFingerprint: optionalTextField(hidden) }),
    hasImproperChain: booleanField(hidden),
    ipAddress: textField({ settable: 'never' }),
    /**
     * API on which the session was opened, or which used an OIDC session first; limits the use of
     * the session. '' for an unused OIDC session, and for a session from before this field existed.
     */
    api: choiceField(['client', 'management'], { since: 2, ...hidden }),
    /** OIDC client ('': none), and SHA-256 of the redeemed code, hex. */
    clientId: textField({ since: 2, ...hidden }),
    ...markHiddenFromEvents({ codeHash: textField({ since: 2, ...hidden }) }),
    /**
     * Log time of the redemption; null without a code, and once a token of the session was used.
     * Until then, the client may redeem the code again within some seconds.
     */
    ...markHiddenFromEvents({ codeRedeemedAt: timestampField({ since: 2, ...hidden }) }),
    /**
     * PEM certificate request of the log-in; '' if there was none. The request grants nothing until
     * a certificate is issued.
     */
    ...markHiddenFromEvents({
      certificateRequest: textField({ since: 2, ...hidden, charactersMax: 4096 }),
    }),
    configTypes: textListField({ settable: 'never' }),
    /** Time of the last recorded use; only a reset of log time decreases it. */
    lastActivityAt: timestampField({ settable: 'never', shown: 'whenSet' }),
    identity: referenceField('identity', 'identityId'),
    token: computedField({ from: 'field', field: 'id' }, textShape),
    cachedLastActivityAt: computedField({ from: 'field', field: 'lastActivityAt' }, dateTimeSchema),
    /**
     * Empty in lists and details of sessions. The responses to a log-in and to
     * `/current-api-session` show the factors that the caller's session still lacks.
     */
    authQueries: constantField([], authQueryListSchema),
    isMfaRequired: constantField(false, booleanSchema),
    isMfaComplete: booleanField({ settable: 'never' }),
    /**
     * Log time at which the session last passed the second factor with a code; null: never, or the
     * factor has been removed since.
     */
    mfaPassedAt: timestampField(hidden),
    ...certificateRenewalFields,
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
