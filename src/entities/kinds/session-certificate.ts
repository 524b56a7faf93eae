import { defineEntity, type EntityOf } from '../define-entity.ts'
import { optionalTextField, idReferenceField, textField, timestampField } from '../fields.ts'
import { markShownInEvents, markHiddenFromEvents } from '../event-visibility.ts'

const made = { settable: 'never' } as const

/**
 * A short-lived certificate of one API session, with which the session's client connects to
 * routers, and which tokens of OIDC can require. The certificate is deleted together with the
 * session.
 */
export const sessionCertificate = defineEntity({
  name: 'sessionCertificate',
  plural: 'sessionCertificates',
  isPublished: true,
  publishedAs: 'sessionCerts',
  operations: {},
  fields: markShownInEvents({
    apiSessionId: idReferenceField('apiSession', 'cascade', { ...made, shown: 'never' }),
    identityId: idReferenceField('identity', 'cascade', { ...made, shown: 'never' }),
    /** PEM: leaf first, then the intermediates. */
    ...markHiddenFromEvents({ certificate: textField({ ...made, charactersMax: 65_536 }) }),
    /** SHA-1 of the leaf in DER, lowercase hex. */
    fingerprint: optionalTextField({ ...made, unique: 'fingerprint must be unique' }),
    subject: textField({ ...made, charactersMax: 8192 }),
    validFrom: timestampField(made),
    validTo: timestampField(made),
  }),
  symbols: [
    { name: 'apiSession', field: 'apiSessionId' },
    'fingerprint',
    'subject',
    'validFrom',
    'validTo',
  ],
  digest: 'state',
})

export type SessionCertificate = EntityOf<typeof sessionCertificate>
