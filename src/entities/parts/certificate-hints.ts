import { computed } from '../fields.ts'
import { flag } from '../shapes.ts'

const whenSet = { shown: 'whenSet' } as const
const ofAuthenticator = (field: string) =>
  ({ from: 'fieldOf', to: 'authenticator', by: 'authenticatorId', field }) as const

/** Whether the client of a session may renew its log-in certificate, and whether it should. */
export const certificateHints = {
  isCertExtendable: computed(ofAuthenticator('isIssuedByNetwork'), flag),
  isCertExtendRequested: computed(ofAuthenticator('isExtendRequested'), flag, whenSet),
  isCertKeyRollRequested: computed(ofAuthenticator('isKeyRollRequested'), flag, whenSet),
} as const
