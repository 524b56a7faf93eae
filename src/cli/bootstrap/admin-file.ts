/**
 * Credentials with which scripts log in as the first administrator: `DIR/admin.json` of quickstart,
 * and an optional file of `cluster init`.
 */
export const ADMIN_FILE_NAME = 'admin.json'

export interface AdminFile {
  readonly username: string
  readonly password: string
  /** Base URLs, in the order of the ids. */
  readonly controllers: readonly string[]
  /** Path of the CA certificate that verifies the controllers at the URLs. */
  readonly ca: string
}
