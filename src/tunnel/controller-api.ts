import { isJsonObject } from '../lib/text/json-value.ts'

/** The client API of the controllers of a cluster, asked as one identity. */
export interface ControllerApi {
  /** Opens a session, by which all that follows is asked. @throws {LogInRefused | Error} */
  logIn(): Promise<ApiLogIn>
  /**
   * @param path below the client API.
   * @returns its `data`.
   * @throws {SessionOver | Error} one clause.
   */
  get(path: string): Promise<unknown>
  /** The same for a request with a body. */
  post(path: string, body: object): Promise<unknown>
  /** Ends the session. @throws {Error} one clause. */
  logOut(timeoutMs: number): Promise<void>
  /** Addresses of the controllers, `https://host:port`: any of them answers from now on. */
  follow(origins: readonly string[]): void
}

export interface ApiLogIn {
  readonly token: string
  readonly identityId: string
  readonly identityName: string
  /** Factors that the session lacks, one clause; null: none. */
  readonly lacks: string | null
}

/** The session has expired or was ended: another one is to be opened. */
export class SessionOver extends Error {
  override readonly name = 'SessionOver'
}

/** A controller knows the identity, or its certificate, and lets it do nothing: one sentence. */
export class LogInRefused extends Error {
  override readonly name = 'LogInRefused'
}

type Fields = Readonly<Record<string, unknown>>

/** An empty object for anything that is none. */
export function fieldsOf(value: unknown): Fields {
  return isJsonObject(value) ? value : {}
}

/** The records of a list; what is no object is left out. */
export function recordsIn(value: unknown): readonly Fields[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  return list.filter((one) => typeof one === 'object' && one !== null) as readonly Fields[]
}

export function textIn(fields: Fields, name: string): string {
  const value = fields[name]
  return typeof value === 'string' ? value : ''
}

export function textsIn(fields: Fields, name: string): readonly string[] {
  const value = fields[name]
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  return list.filter((one) => typeof one === 'string')
}
