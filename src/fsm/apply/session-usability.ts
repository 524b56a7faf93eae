import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import type { StateView } from '../../ports/state-view.ts'
import { isPrivileged } from './actor-rights.ts'

// An edge router receives the token of each client that connects to it, so a stolen router reveals
// tokens. A session is therefore of one of two kinds, depending on the API at which it was opened.
// Routers may know the tokens of client API sessions. Sessions of the management API may manage the
// network.

type Records = Pick<StateView, 'get' | 'findAll' | 'featureLevel'>

/** Feature level from which each session records the API at which it was opened. */
const SAID_FROM_LEVEL = 2

/**
 * Whether the session's client may use routers, which see the session's token. A client whose
 * identity has rights may use routers only with a session of the client API whose token is useless
 * without the private key of the session's certificate.
 */
export function canUseRouters(session: ApiSession, identity: Identity | undefined): boolean {
  const { api } = session
  // @guard sessions-at-a-stolen-router--management
  if (identity === undefined || api === 'management') return false
  // @guard sessions-at-a-stolen-router--rights
  return !isPrivileged(identity) || (api === 'client' && isKeyBound(session))
}

/**
 * Whether a session's token is useless without a private key: the key of the certificate that
 * opened the session, or of a certificate that was requested during the log-in.
 */
export function isKeyBound({ certFingerprint, certificateRequest }: ApiSession): boolean {
  // @guard oidc/session-keys--bound
  return certFingerprint !== null || Boolean(certificateRequest)
}

/**
 * Whether the session is not yet bound to an API. A log-in with OIDC opens no session at an API;
 * the session is bound to the API that it uses first. False for a session without an OIDC client,
 * even if it records no API.
 */
export function isNotBoundToApi({ api, clientId }: ApiSession): boolean {
  // @guard oidc/code-flow--first-use
  return Boolean(clientId) && api !== 'client' && api !== 'management'
}

/**
 * Whether APIs other than the client API accept the session. From feature level 2, they refuse a
 * session that does not record its API and whose client has a certificate, because routers may know
 * its token.
 */
export function isAcceptedByManagement(records: Records, session: ApiSession): boolean {
  // @guard sessions-at-a-stolen-router--manages
  if (session.api === 'client' || session.api === 'management') return session.api === 'management'
  if (records.featureLevel < SAID_FROM_LEVEL) return true
  return sessionCertificateFingerprints(records, session).length === 0
}

/**
 * Whether a client may use the session at the client API with the given certificate. Routers know
 * the tokens of their clients, so a session that is bound to a key can be used only with one of its
 * certificates (`sessionCertificateFingerprints`).
 * @param fingerprint fingerprint of the certificate whose private key the client has proved; null:
 * none.
 */
export function isUsableWithCertificate(
  records: Records,
  session: ApiSession,
  fingerprint: string | null,
): boolean {
  const { api, certFingerprint, clientId } = session
  if ((api !== 'client' && !clientId) || !isKeyBound(session)) return true
  // @guard oidc/session-keys--none, sessions-at-a-stolen-router--certificate
  if (fingerprint === null) return false
  return (
    fingerprint === certFingerprint ||
    sessionCertificateFingerprints(records, session).includes(fingerprint)
  )
}

/**
 * Hex SHA-1 fingerprints of the certificates that the session's client may present: the certificate
 * that opened the session, the certificates of its identity, and those issued for the session.
 */
export function sessionCertificateFingerprints(
  records: Records,
  { id, identityId, certFingerprint }: ApiSession,
): readonly string[] {
  const own = records
    .findAll('sessionCertificate', 'apiSessionId', id)
    .map(({ fingerprint }) => fingerprint)
  const enrolled = records
    .findAll('authenticator', 'identityId', identityId)
    // A migrated authenticator without its certificate is skipped, because its fingerprint alone
    // proves nothing.
    .map(({ fingerprint, certPem }) => (certPem === null ? null : fingerprint))
  const all = [certFingerprint, ...own, ...enrolled]
  return [...new Set(all.flatMap((print) => (print === null || print === '' ? [] : [print])))]
}
