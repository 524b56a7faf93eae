import { isJsonObject } from '../lib/text/json-value.ts'

/** Client API of the controllers of a cluster, for one identity. */
export interface ControllerApi {
  /** Opens the session that all later requests use. @throws {LogInRefusedError | Error} */
  logIn(): Promise<ApiLogIn>
  /**
   * @param path below the client API.
   * @returns its `data`.
   * @throws {SessionEndedError | Error} one clause.
   */
  get(path: string): Promise<unknown>
  /** Sends a POST request; otherwise as `get`. */
  post(path: string, body: object): Promise<unknown>
  /** Ends the session. @throws {Error} one clause. */
  logOut(timeoutMs: number): Promise<void>
  /** Replaces the controller addresses, `https://host:port`; requests go to any of them. */
  follow(origins: readonly string[]): void
}

/** A session that a controller opened for this identity. */
export interface ApiLogIn {
  readonly token: string
  readonly identityId: string
  readonly identityName: string
  /** Authentication factors that the session lacks, as one clause; null: none. */
  readonly lacks: string | null
}

/** The session has expired or was ended; the client must log in again. */
export class SessionEndedError extends Error {
  override readonly name = 'SessionOver'
}

/**
 * A controller knows the identity or its certificate but denies it access. The message is one
 * sentence.
 */
export class LogInRefusedError extends Error {
  override readonly name = 'LogInRefused'
}

type Fields = Readonly<Record<string, unknown>>

/** The value if it is an object, otherwise an empty object. */
export function fieldsOf(value: unknown): Fields {
  return isJsonObject(value) ? value : {}
}

/** The records of a list; items that are not objects are left out. */
export function readRecords(value: unknown): readonly Fields[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  return list.filter((one) => typeof one === 'object' && one !== null) as readonly Fields[]
}

/** '' if the field is absent or no text. */
export function readTextField(fields: Fields, name: string): string {
  const value = fields[name]
  return typeof value === 'string' ? value : ''
}

/** [] if the field is absent; other values than texts are dropped. */
export function readTextsField(fields: Fields, name: string): readonly string[] {
  const value = fields[name]
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  return list.filter((one) => typeof one === 'string')
}
