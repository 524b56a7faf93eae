import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Observation } from '../../ports/live-facts.ts'
import type { EventSubject, NewEvent } from '../field.ts'

export const authentication: EventSubject = {
  namespace: 'authentication',
  aliases: ['edge.authentications'],
  about: 'A log-in was attempted.',
  typeField: 'event_type',
  types: [
    { name: 'success', emitter: 'every', when: 'a session was opened' },
    { name: 'fail', emitter: 'seer', when: 'a log-in was refused; limited in number' },
  ],
  fields: [
    { name: 'event_type', type: 'string', meaning: 'The type.' },
    { name: 'type', type: 'string', meaning: 'The method: `password`, `cert` or `ext-jwt`.' },
    {
      name: 'authenticator_id',
      type: 'string',
      meaning: 'ID of the authenticator; empty if none matched.',
    },
    {
      name: 'external_jwt_signer_id',
      type: 'string',
      meaning: 'The signer of the token; empty without one.',
    },
    {
      name: 'identity_id',
      type: 'string',
      meaning: 'ID of the identity; empty if it was not proven.',
    },
    {
      name: 'auth_policy_id',
      type: 'string',
      meaning: 'ID of the auth policy of that identity; empty if it was not proven.',
    },
    { name: 'remote_address', type: 'string', meaning: 'Source address.' },
    { name: 'success', type: 'boolean', meaning: 'Whether a session was opened.' },
    {
      name: 'reason',
      type: 'string',
      meaning:
        'Why the log-in was refused, such as `TOKEN_AUDIENCE`, or the code of the answer; empty at a success.',
    },
    {
      name: 'claim',
      type: 'string',
      meaning: 'The claim of the token at fault, by name; empty without one.',
    },
    {
      name: 'improper_client_cert_chain',
      type: 'boolean',
      meaning: 'The certificate was sent without its intermediates.',
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
