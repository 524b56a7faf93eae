/**
 * How scripts log in as the first administrator: `DIR/admin.json` of quickstart, and what
 * `cluster init` may write.
 */
export const ADMIN_FILE_NAME = 'admin.json'

export interface AdminFile {
  readonly username: string
  readonly password: string
  /** Base URLs, in the order of the ids. */
  readonly controllers: readonly string[]
  /** Path of the CA certificate that the URLs are verified against. */
  readonly ca: string
}
