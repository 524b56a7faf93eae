import { defineEntity, type EntityOf } from '../define.ts'
import { boolean, text } from '../fields.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/** Key and store with which controller `id` may join; not served by any API. */
export const admission = defineEntity({
  name: 'admission',
  plural: 'admissions',
  isPublished: false,
  operations: {},
  fields: {
    /** DER of the leaf's SubjectPublicKeyInfo, base64. */
    publicKeySpki: text(hidden),
    /** 32 hex digits. */
    storeId: text(hidden),
    /** host:port of its mesh, as the controller reported it on joining. */
    address: text(hidden),
    /** Certificate as issued on joining: leaf first, then the intermediates. */
    certificatePem: text(hidden),
    /** '' for the controllers that formed the cluster. */
    ticketId: text(hidden),
    isVoter: boolean(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type AdmissionFields = EntityOf<typeof admission>
