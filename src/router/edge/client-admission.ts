import type { TLSSocket } from 'node:tls'

import type { ChannelMessage } from '../../channel/frame.ts'
import { readText } from '../../channel/headers.ts'
import { type Certificate, leafSpiffeId, parseCertificate } from '../../pki/certificate.ts'
import { sessionCertificateIds } from '../../pki/spiffe.ts'
import { edgeHeader } from './edge-messages.ts'
import type { EdgeApiSession, ApiSessions } from './api-sessions.ts'

export interface EdgeClient {
  readonly session: EdgeApiSession
  /** Hex SHA-1 of the certificate that it has shown. */
  readonly fingerprint: string
  /** Its certificate names its session, so a list of fingerprints need not. */
  readonly isNamedBySpiffe: boolean
}

export type EdgeAdmission =
  | { readonly ok: true; readonly client: EdgeClient }
  | { readonly ok: false; readonly reason: string }

export interface EdgeAdmissionParts {
  readonly sessions: Pick<ApiSessions, 'await'>
  readonly lookupTimeoutMs: number
  /** The domain of the network; null: no controller was met yet. */
  readonly trustDomain: () => string | null
}

/** Text that a token of an identity provider begins with: base64url of `{"`. */
const BEARER_START = 'ey'
const TOKEN_CHARACTERS_MAX = 8192

/**
 * Judges who has connected: the client of the API session whose token the hello shows, when the
 * certificate of the TLS connection belongs to that session. A token alone may have been seen.
 */
export async function admitClient(
  socket: TLSSocket,
  { headers }: ChannelMessage,
  { sessions, lookupTimeoutMs, trustDomain }: EdgeAdmissionParts,
): Promise<EdgeAdmission> {
  const token = readText(headers, edgeHeader.sessionToken) ?? ''
  if (token === '' || token.length > TOKEN_CHARACTERS_MAX) {
    return refused('the hello shows no token of an API session')
  }
  if (token.startsWith(BEARER_START)) {
    return refused('API sessions of an OpenID provider are not served by this router')
  }
  const shown = socket.getPeerX509Certificate()
  if (shown === undefined) return refused('no certificate was presented')
  const leaf = parseCertificate(Uint8Array.from(shown.raw))
  const session = await sessions.await(token, lookupTimeoutMs)
  if (session === null) return refused('no controller has told of this API session')
  const isNamedBySpiffe = socket.authorized && isOfSession(leaf, session, trustDomain())
  const client = { session, fingerprint: leaf.sha1, isNamedBySpiffe }
  return isStillAdmitted(client, session)
    ? { ok: true, client }
    : refused('the certificate does not belong to the API session')
}

/** @param session the same as before, with the certificates that it has now. */
export function isStillAdmitted(client: EdgeClient, session: EdgeApiSession | null): boolean {
  if (session?.id !== client.session.id || session.identityId !== client.session.identityId) {
    return false
  }
  return client.isNamedBySpiffe || session.fingerprints.has(client.fingerprint)
}

/** A certificate that was issued for this session alone, by an authority of the network. */
function isOfSession(
  leaf: Certificate,
  session: EdgeApiSession,
  trustDomain: string | null,
): boolean {
  if (trustDomain === null) return false
  try {
    const ids = sessionCertificateIds(leafSpiffeId(leaf), trustDomain)
    return ids?.identityId === session.identityId && ids.apiSessionId === session.id
  } catch {
    return false
  }
}

function refused(reason: string): EdgeAdmission {
  return { ok: false, reason }
}
