/** A service session presented by a client: the right to dial or host one service. */
export interface ServiceSession {
  readonly token: string
  /**
   * The session ID that the token contains. The router does not verify the token; a controller
   * must.
   */
  readonly id: string | null
  /** ID of a service that the client names instead of a session; absent: it presents a session. */
  readonly serviceId?: string
}

const TOKEN_CHARACTERS_MAX = 8192

/** Null if the body is too long for a token. */
export function readServiceSession(body: Uint8Array): ServiceSession | null {
  if (body.length === 0 || body.length > TOKEN_CHARACTERS_MAX) return null
  const token = Buffer.from(body).toString('utf8')
  return { token, id: idIn(token) }
}

function idIn(token: string): string | null {
  const [, claims, ...rest] = token.split('.')
  if (claims === undefined || rest.length !== 1) return null
  try {
    const parsed = JSON.parse(Buffer.from(claims, 'base64url').toString('utf8')) as {
      readonly jti?: unknown
    } | null
    return typeof parsed?.jti === 'string' ? parsed.jti : null
  } catch {
    return null
  }
}

/** Whether the session is in a controller's lists; sessions are identified by token or by ID. */
export function isListedSession(
  { token, id }: ServiceSession,
  tokens: ReadonlySet<string>,
  ids: ReadonlySet<string>,
): boolean {
  return tokens.has(token) || (id !== null && (ids.has(id) || tokens.has(id)))
}
