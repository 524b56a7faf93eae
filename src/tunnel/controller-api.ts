import { isJsonObject } from '../lib/text/json-value.ts'

/** The client API of a cluster's controllers, used for one identity. */
export interface ControllerApi {
  /**
   * Creates the session that all later requests use.
   * @throws {LogInRefusedError | Error}
   */
  logIn(): Promise<ApiLogInResult>
  /**
   * @param path path below the client API.
   * @returns `data` of the response.
   * @throws {SessionEndedError | Error} with a message of one clause.
   */
  get(path: string): Promise<unknown>
  /** Sends a POST request; otherwise like `get`. */
  post(path: string, body: object): Promise<unknown>
  /**
   * Ends the session.
   * @throws {Error} with a message of one clause.
   */
  logOut(timeoutMs: number): Promise<void>
  /**
   * Replaces the controller addresses, `https://host:port`. A request may be sent to any of these
   * controllers.
   */
  follow(origins: readonly string[]): void
  /**
   * Authenticates new connections with this certificate, which must be for the same key; the
   * session stays valid.
   */
  useCertificate(certificatePem: string): void
}

/** A session that a controller created for this identity. */
export interface ApiLogInResult {
  readonly token: string
  readonly identityId: string
  readonly identityName: string
  /**
   * Authentication factors that are missing in the session, as one clause; null if none is missing.
   */
  readonly lacks: string | null
}

/** The session has expired or was ended; the client must log in again. */
export class SessionEndedError extends Error {
  override readonly name = 'SessionEndedError'
}

/**
 * A controller refused the log-in, or granted a session that lacks an authentication factor. The
 * message is one sentence.
 */
export class LogInRefusedError extends Error {
  override readonly name = 'LogInRefusedError'
}

type Fields = Readonly<Record<string, unknown>>

/** The value itself if it is an object, otherwise an empty object. */
export function objectOrEmpty(value: unknown): Fields {
  return isJsonObject(value) ? value : {}
}

/** The records of a list; items that are not objects are dropped. */
export function readRecords(value: unknown): readonly Fields[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  return list.filter((one) => typeof one === 'object' && one !== null) as readonly Fields[]
}

/** The string in a field; '' if the field is absent or not a string. */
export function readTextField(fields: Fields, name: string): string {
  const value = fields[name]
  return typeof value === 'string' ? value : ''
}

/** The strings in a field; [] if the field is absent. Values other than strings are dropped. */
export function readTextListField(fields: Fields, name: string): readonly string[] {
  const value = fields[name]
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  return list.filter((one) => typeof one === 'string')
}
