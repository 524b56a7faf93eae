import type { TLSSocket } from 'node:tls'

import type { ChannelMessage } from '../../channel/frame.ts'
import { readText } from '../../channel/headers.ts'
import { type Certificate, leafSpiffeId, parseCertificate } from '../../pki/certificate.ts'
import { identitySpiffeId, sessionCertificateIds, type SpiffeId } from '../../pki/spiffe.ts'
import { BearerSessions } from './bearer-sessions.ts'
import { edgeHeaderKey } from '../../channel/messages/edge.ts'
import type { ApiSessions } from './api-sessions.ts'
import type { EdgeApiSession } from './edge-api-session.ts'
import { peerLeafDer } from '../../lib/runtime/peer-certificates.ts'

export interface EdgeClient {
  readonly session: EdgeApiSession
  /** Hex SHA-1 of the client's certificate. */
  readonly fingerprint: string
  /**
   * True: an authority of the network issued the client's certificate, and the SPIFFE ID in it
   * names the session or, for an OIDC session, its identity. The certificate then need not be in
   * the list of fingerprints.
   */
  readonly isNamedBySpiffe: boolean
}

export type EdgeAdmission =
  | { readonly ok: true; readonly client: EdgeClient }
  | { readonly ok: false; readonly reason: string }

export interface EdgeAdmissionDeps {
  readonly sessions: Pick<ApiSessions, 'await'>
  readonly lookupTimeoutMs: number
  /** Aborted when the client's connection closes. */
  readonly signal: AbortSignal
  /** The network's trust domain; null until the router has reached its first controller. */
  readonly trustDomain: () => string | null
}

const TOKEN_CHARACTERS_MAX = 8192

/**
 * Authenticates a client: the hello must contain the token of an API session, and the TLS
 * certificate must belong to that session. The token alone is not sufficient, because others may
 * have intercepted it.
 */
export async function admitClient(
  socket: TLSSocket,
  { headers }: ChannelMessage,
  { sessions, lookupTimeoutMs, signal, trustDomain }: EdgeAdmissionDeps,
): Promise<EdgeAdmission> {
  const token = readText(headers, edgeHeaderKey.sessionToken) ?? ''
  if (token === '' || token.length > TOKEN_CHARACTERS_MAX) {
    return refused('the hello shows no token of an API session')
  }
  const shown = peerLeafDer(socket)
  if (shown === null) return refused('no certificate was presented')
  const leaf = parseCertificate(shown)
  const session = await sessions.await(token, lookupTimeoutMs, signal)
  if (session === null) {
    return refused(
      BearerSessions.isMeant(token)
        ? 'the access token is not good: sign in again'
        : 'no controller has reported this API session',
    )
  }
  // @guard client-with-a-stolen-token--authority
  const isNamedBySpiffe = socket.authorized && isOfSession(leaf, session, trustDomain())
  const client = { session, fingerprint: leaf.sha1, isNamedBySpiffe }
  return isStillAdmitted(client, session)
    ? { ok: true, client }
    : refused('the certificate does not belong to the API session')
}

/**
 * Whether the client's certificate still belongs to its session.
 * @param session the session as the router knows it now; null if it has ended.
 */
export function isStillAdmitted(client: EdgeClient, session: EdgeApiSession | null): boolean {
  if (session?.id !== client.session.id || session.identityId !== client.session.identityId) {
    return false
  }
  // @guard client-with-a-stolen-token--certificate
  return client.isNamedBySpiffe || session.fingerprints.has(client.fingerprint)
}

/**
 * Whether the SPIFFE ID in the certificate names this session or, for an OIDC session, its
 * identity: controllers do not report the certificates of OIDC sessions to routers. The caller must
 * also check that an authority of the network issued the certificate.
 */
function isOfSession(
  leaf: Certificate,
  session: EdgeApiSession,
  trustDomain: string | null,
): boolean {
  if (trustDomain === null) return false
  try {
    const spiffeId = leafSpiffeId(leaf)
    if (BearerSessions.isMeant(session.token) && isIdentity(spiffeId, session, trustDomain)) {
      return true
    }
    const ids = sessionCertificateIds(spiffeId, trustDomain)
    // @guard client-with-a-stolen-token--session
    return ids?.identityId === session.identityId && ids.apiSessionId === session.id
  } catch {
    return false
  }
}

function refused(reason: string): EdgeAdmission {
  return { ok: false, reason }
}

function isIdentity(
  { trustDomain, path }: SpiffeId,
  { identityId }: EdgeApiSession,
  ownDomain: string,
): boolean {
  return `spiffe://${trustDomain}${path}` === identitySpiffeId(ownDomain, identityId)
}
