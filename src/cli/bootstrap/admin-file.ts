/**
 * Name of the file with the first administrator's credentials, with which scripts log in.
 * Quickstart writes `DIR/admin.json`; `cluster init` writes the file next to the configuration, if
 * it generates the password.
 */
export const ADMIN_FILE_NAME = 'admin.json'

export interface AdminFile {
  readonly username: string
  readonly password: string
  /** Base URLs at which the controllers can be reached. */
  readonly controllers: readonly string[]
  /** Path of the CA certificate that verifies the controllers at the URLs. */
  readonly ca: string
}
