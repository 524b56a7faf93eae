import { defineEntity, type EntityOf } from '../define.ts'
import { optionalText, reference, text, timestamp } from '../fields.ts'
import { shownInEvents, hiddenFromEvents } from '../published.ts'

const made = { settable: 'never' } as const

/**
 * A short-lived certificate of one API session. The session's client uses it to connect to routers.
 * It is deleted together with the session.
 */
export const sessionCertificate = defineEntity({
  name: 'sessionCertificate',
  plural: 'sessionCertificates',
  isPublished: true,
  publishedAs: 'sessionCerts',
  operations: {},
  fields: shownInEvents({
    apiSessionId: reference('apiSession', 'cascade', { ...made, shown: 'never' }),
    identityId: reference('identity', 'cascade', { ...made, shown: 'never' }),
    /** PEM: leaf first, then the intermediates. */
    ...hiddenFromEvents({ certificate: text({ ...made, charactersMax: 65_536 }) }),
    /** SHA-1 of the leaf in DER, lowercase hex. */
    fingerprint: optionalText({ ...made, unique: 'fingerprint must be unique' }),
    subject: text({ ...made, charactersMax: 8192 }),
    validFrom: timestamp(made),
    validTo: timestamp(made),
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
