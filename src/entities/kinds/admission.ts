import { defineEntity, type EntityOf } from '../define.ts'
import { boolean, text } from '../fields.ts'

const hidden = { settable: 'never', shown: 'never' } as const

/** Key that may come in as controller `id`, and its store; served by no API. */
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
    /** host:port of its mesh, as it was told on joining. */
    address: text(hidden),
    /** Certificate as issued on joining: leaf first, then the intermediates. */
    certificatePem: text(hidden),
    /** '' for the controllers that the cluster was formed with. */
    ticketId: text(hidden),
    isVoter: boolean(hidden),
  },
  symbols: [],
  digest: 'state',
})

export type AdmissionFields = EntityOf<typeof admission>
