import { fromBinary } from '@bufbuild/protobuf'
import {
  AuthenticatorExtendSchema,
  AuthenticatorExtendVerifySchema,
  type SessionCertificateCreate,
  SessionCertificateCreateSchema,
  SessionCertificateDeleteSchema,
} from '../../../proto/gen/command_pb.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import {
  acceptedOutcome,
  fieldFaultOutcome,
  notFoundOutcome,
  refusedOutcome,
} from '../apply/outcome.ts'
import { createWriteConsequences } from '../apply/references.ts'

/**
 * Maximum number of certificates that a session has at a time: a client needs one, and before it
 * expires, the next one.
 */
export const sessionCertificatesMax = 10

/**
 * Stores a new certificate in addition to the current one. The current one stays valid until its
 * holder proves that it received the new one.
 */
export function extendAuthenticator(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { id, fingerprint, certificate } = fromBinary(AuthenticatorExtendSchema, payload)
  const authenticator = state.get('authenticator', id)
  if (authenticator === undefined) return notFoundOutcome('authenticator', id)
  if (!isOfCaller(state, authenticator.identityId, context))
    return notFoundOutcome('authenticator', id)
  if (certificate === undefined || !authenticator.isIssuedByNetwork) {
    return refusedOutcome('CAN_NOT_UPDATE_AUTHENTICATOR')
  }
  if (authenticator.fingerprint !== fingerprint) return refusedOutcome('UNAUTHORIZED')
  const { indexes } = state.table('authenticator')
  if (indexes.owner('fingerprint', certificate.fingerprint) !== undefined) {
    return refusedOutcome('CERT_IN_USE')
  }
  const fields = {
    nextCertPem: certificate.pem,
    nextFingerprint: certificate.fingerprint,
    nextPublicKeyPrint: certificate.publicKeyPrint,
  }
  createWriteConsequences(state, context).put('authenticator', id, { ...authenticator, ...fields })
  return acceptedOutcome(id)
}

/**
 * Replaces the old certificate with the new one, after which the old certificate cannot be used.
 */
export function verifyAuthenticatorExtension(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { id, fingerprint } = fromBinary(AuthenticatorExtendVerifySchema, payload)
  const authenticator = state.get('authenticator', id)
  if (authenticator === undefined) return notFoundOutcome('authenticator', id)
  if (!isOfCaller(state, authenticator.identityId, context))
    return notFoundOutcome('authenticator', id)
  const { nextCertPem, nextFingerprint, nextPublicKeyPrint } = authenticator
  if (nextCertPem === null || nextFingerprint === null) {
    return refusedOutcome('CAN_NOT_UPDATE_AUTHENTICATOR', 'no new certificate waits to be verified')
  }
  if (nextFingerprint !== fingerprint) return refusedOutcome('INVALID_CLIENT_CERT')
  const owner = state.table('authenticator').indexes.owner('fingerprint', nextFingerprint)
  if (owner !== undefined) return refusedOutcome('CERT_IN_USE')
  const before = authenticator.fingerprint
  const consequences = createWriteConsequences(state, context)
  consequences.put('authenticator', id, {
    ...authenticator,
    certPem: nextCertPem,
    fingerprint: nextFingerprint,
    publicKeyPrint: nextPublicKeyPrint,
    lastExtendRolledKeys: nextPublicKeyPrint !== authenticator.publicKeyPrint,
    nextCertPem: null,
    nextFingerprint: null,
    nextPublicKeyPrint: null,
    isExtendRequested: false,
    isKeyRollRequested: false,
    extendRequestedAt: null,
  })
  followInSessions(state, id, { before, after: nextFingerprint }, context)
  return acceptedOutcome(id)
}

/**
 * Updates the sessions that were opened with the old certificate to the new fingerprint, so that
 * they continue.
 */
function followInSessions(
  state: State,
  authenticatorId: string,
  fingerprints: { readonly before: string | null; readonly after: string },
  { index: revision }: CommandContext,
): void {
  for (const id of Array.from(
    state.table('apiSession').indexes.ids('authenticatorId', authenticatorId),
  )) {
    const session = state.get('apiSession', id)
    if (session === undefined || session.certFingerprint !== fingerprints.before) continue
    state.put('apiSession', { ...session, certFingerprint: fingerprints.after, revision })
  }
}

/** Stores a certificate for the caller's own session; refused if the session has ended. */
export function createSessionCertificate(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const message = fromBinary(SessionCertificateCreateSchema, payload)
  const { id, apiSessionId, certificate, subject } = message
  const session = state.get('apiSession', apiSessionId)
  if (session === undefined || certificate === undefined || !isSessionOf(apiSessionId, context)) {
    return refusedOutcome('UNAUTHORIZED')
  }
  if (id === '' || state.get('sessionCertificate', id) !== undefined) {
    return fieldFaultOutcome({ field: 'id', reason: 'id must be unique' })
  }
  const { indexes } = state.table('sessionCertificate')
  if (indexes.owner('fingerprint', certificate.fingerprint) !== undefined) {
    return refusedOutcome('CERT_IN_USE')
  }
  forgetOthers(state, message, context)
  if (indexes.ids('apiSessionId', apiSessionId).size >= sessionCertificatesMax) {
    const reason = `an API session has at most ${sessionCertificatesMax} certificates; delete one first`
    return fieldFaultOutcome({ field: 'csr', reason })
  }
  createWriteConsequences(state, context).put('sessionCertificate', id, {
    apiSessionId,
    identityId: session.identityId,
    certificate: certificate.pem,
    fingerprint: certificate.fingerprint,
    subject,
    validFrom: Number(message.validFromMs),
    validTo: Number(message.validToMs),
  })
  return acceptedOutcome(id)
}

/**
 * Removes the session's expired certificates, which are useless and would count toward the limit.
 * If the new certificate replaces the others (`replacesOthers`), removes all certificates of the
 * session.
 */
function forgetOthers(
  state: State,
  { apiSessionId, replacesOthers }: SessionCertificateCreate,
  context: CommandContext,
): void {
  for (const id of Array.from(
    state.table('sessionCertificate').indexes.ids('apiSessionId', apiSessionId),
  )) {
    const known = state.get('sessionCertificate', id)
    const isExpired = (known?.validTo ?? Infinity) <= context.logTimeMs
    // @guard oidc/session-keys--rotated
    if (replacesOthers || isExpired) {
      createWriteConsequences(state, context).remove('sessionCertificate', id)
    }
  }
}

/** Deletes a certificate of the caller's own session. */
export function deleteSessionCertificate(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { id, apiSessionId } = fromBinary(SessionCertificateDeleteSchema, payload)
  const known = state.get('sessionCertificate', id)
  const isOwn = known?.apiSessionId === apiSessionId && isSessionOf(apiSessionId, context)
  if (!isOwn) {
    return notFoundOutcome('sessionCertificate', id)
  }
  createWriteConsequences(state, context).remove('sessionCertificate', id)
  return acceptedOutcome(id)
}

/**
 * Whether the command may act on the identity. A session may act only on its own identity; the
 * system may act on any identity.
 */
function isOfCaller(state: State, identityId: string, { sessionId }: CommandContext): boolean {
  if (sessionId === '') return true
  return state.get('apiSession', sessionId)?.identityId === identityId
}

function isSessionOf(apiSessionId: string, { sessionId }: CommandContext): boolean {
  return sessionId === '' || sessionId === apiSessionId
}
