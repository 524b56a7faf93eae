import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Observation } from '../../ports/observations.ts'
import type { EventSubject, NewEvent } from '../event-field.ts'

export const authenticationSubject: EventSubject = {
  namespace: 'authentication',
  aliases: ['edge.authentications'],
  about: 'A log-in was attempted.',
  typeField: 'event_type',
  types: [
    { name: 'success', emitter: 'every', when: 'a session was opened' },
    {
      name: 'fail',
      emitter: 'observer',
      when: 'a log-in was refused; the number of these events is limited',
    },
  ],
  fields: [
    { name: 'event_type', type: 'string', meaning: 'Type of the event, from the table above.' },
    {
      name: 'type',
      type: 'string',
      meaning: '`password`, `cert` or `ext-jwt`; for `fail`, the method that the client named.',
    },
    {
      name: 'authenticator_id',
      type: 'string',
      meaning: 'ID of the authenticator; empty if the log-in failed, or used none.',
    },
    {
      name: 'external_jwt_signer_id',
      type: 'string',
      meaning:
        'ID of the external JWT signer of the token; empty if the log-in used no such token.',
    },
    {
      name: 'identity_id',
      type: 'string',
      meaning: 'ID of the identity; empty if the log-in failed.',
    },
    {
      name: 'auth_policy_id',
      type: 'string',
      meaning: 'ID of the auth policy of that identity; empty if the log-in failed.',
    },
    { name: 'remote_address', type: 'string', meaning: 'Source address.' },
    { name: 'success', type: 'boolean', meaning: 'Whether a session was opened.' },
    {
      name: 'reason',
      type: 'string',
      meaning:
        'Why the log-in was refused, such as `TOKEN_AUDIENCE`, or the error code of the response; empty after a success.',
    },
    {
      name: 'claim',
      type: 'string',
      meaning: 'Name of the invalid claim in the token; empty if no claim caused the refusal.',
    },
    {
      name: 'improper_client_cert_chain',
      type: 'boolean',
      meaning:
        'Whether the client sent its certificate without the intermediate certificates; false if the log-in failed.',
    },
  ],
}

/** @param authPolicyId auth policy that the identity had when the entry was applied. */
export function loggedInEvent(session: ApiSession, authPolicyId: string, atMs: number): NewEvent {
  const { authenticatorId, signerId, certFingerprint } = session
  return {
    namespace: 'authentication',
    atMs,
    weight: 384,
    fields: () => ({
      event_type: 'success',
      type: signerId !== '' ? 'ext-jwt' : certFingerprint === null ? 'password' : 'cert',
      authenticator_id: authenticatorId,
      external_jwt_signer_id: signerId,
      identity_id: session.identityId,
      auth_policy_id: authPolicyId,
      remote_address: session.ipAddress,
      success: true,
      reason: '',
      claim: '',
      improper_client_cert_chain: session.hasImproperChain,
    }),
  }
}

export function logInFailedEvent(
  failure: Omit<Extract<Observation, { readonly kind: 'logInFailed' }>, 'kind'>,
  atMs: number,
): NewEvent {
  return {
    namespace: 'authentication',
    atMs,
    weight: 384,
    fields: () => ({
      event_type: 'fail',
      type: failure.method,
      authenticator_id: '',
      external_jwt_signer_id: failure.signerId,
      identity_id: '',
      auth_policy_id: '',
      remote_address: failure.address,
      success: false,
      reason: failure.reason,
      claim: failure.claim,
      improper_client_cert_chain: false,
    }),
  }
}
