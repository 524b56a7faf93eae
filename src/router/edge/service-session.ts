/** A service session that a client presents: the right to dial or host one service. */
export interface ServiceSession {
  readonly token: string
  /**
   * ID of the session according to the token. The router does not verify the token; a controller
   * does.
   */
  readonly id: string | null
  /**
   * ID of a service, if the client names the service instead of presenting a session; absent
   * otherwise.
   */
  readonly serviceId?: string
}

const TOKEN_CHARACTERS_MAX = 8192

/** Null if the body is empty or longer than a token can be. */
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

/** Whether the session is among those that a controller lists, either by token or by ID. */
export function isListedSession(
  { token, id }: ServiceSession,
  tokens: ReadonlySet<string>,
  ids: ReadonlySet<string>,
): boolean {
  return tokens.has(token) || (id !== null && (ids.has(id) || tokens.has(id)))
}
