/** A service session as a client shows it: for one service, to dial or to host. */
export interface ServiceSession {
  readonly token: string
  /** The id that its token says; a controller judges whether that is true. */
  readonly id: string | null
  /** The id of a service that its client names in place of a session; absent: it shows one. */
  readonly serviceId?: string
}

const TOKEN_CHARACTERS_MAX = 8192

/** Null when it is too long to be one. */
export function shownServiceSession(body: Uint8Array): ServiceSession | null {
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

/** Whether a controller means it by its words: routers know sessions by one or the other. */
export function isSessionAmong(
  { token, id }: ServiceSession,
  tokens: ReadonlySet<string>,
  ids: ReadonlySet<string>,
): boolean {
  return tokens.has(token) || (id !== null && (ids.has(id) || tokens.has(id)))
}
