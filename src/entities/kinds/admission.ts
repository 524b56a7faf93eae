import { defineEntity, type EntityOf } from '../define-entity.ts'
import { booleanField, textField } from '../fields.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/**
 * Public key and store ID with which the controller with this id may join the cluster; not served
 * by any API.
 */
export const admission = defineEntity({
  name: 'admission',
  plural: 'admissions',
  isPublished: false,
  operations: {},
  fields: {
    /** SubjectPublicKeyInfo of the leaf certificate, DER in base64. */
    publicKeySpki: textField(hidden),
    /** Store ID, 32 hex digits. */
    storeId: textField(hidden),
    /**
     * host:port of the controller's mesh listener, as the controller reported it when it joined.
     */
    address: textField(hidden),
    /**
     * Certificate that was issued when the controller joined: leaf first, then the intermediates.
     */
    certificatePem: textField(hidden),
    /**
     * Ticket with which the controller joined; '' for the controllers that formed the cluster.
     */
    ticketId: textField(hidden),
    isVoter: booleanField(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type JoinAdmission = EntityOf<typeof admission>
