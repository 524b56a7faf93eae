/** Error code for scripts; the message of the fault is for people. */
type MigrateFaultCode =
  | 'NOT_A_DATABASE'
  | 'CUT_OFF'
  | 'DAMAGED'
  | 'IN_USE'
  | 'TOO_LARGE'
  | 'UNREADABLE'
  | 'WRONG_VERSION'
  | 'OTHER_NETWORK'
  | 'CONFIGURATION'

/**
 * A fault that prevents the migration of the network or of one record. The message is one sentence,
 * with a remedy if there is one.
 */
export class MigrationFault extends Error {
  override readonly name = 'MigrationFault'
  readonly code: MigrateFaultCode

  constructor(code: MigrateFaultCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause })
    this.code = code
  }
}

export function damagedDatabaseFault(what: string): MigrationFault {
  return new MigrationFault(
    'DAMAGED',
    `the database is damaged or was copied while a controller wrote to it (${what}); use the file of a stopped controller, or a snapshot`,
  )
}
