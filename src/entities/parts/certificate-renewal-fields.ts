import { computedField } from '../fields.ts'
import { booleanSchema } from '../response-schemas.ts'

const whenSet = { shown: 'whenSet' } as const
const ofAuthenticator = (field: string) =>
  ({ from: 'fieldOf', to: 'authenticator', by: 'authenticatorId', field }) as const

/**
 * Fields that show whether the client of a session may renew its log-in certificate, and whether an
 * administrator has requested that it does.
 */
export const certificateRenewalFields = {
  isCertExtendable: computedField(ofAuthenticator('isIssuedByNetwork'), booleanSchema),
  isCertExtendRequested: computedField(
    ofAuthenticator('isExtendRequested'),
    booleanSchema,
    whenSet,
  ),
  isCertKeyRollRequested: computedField(
    ofAuthenticator('isKeyRollRequested'),
    booleanSchema,
    whenSet,
  ),
} as const
