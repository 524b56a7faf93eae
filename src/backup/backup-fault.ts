/** Error code for scripts; the message of the fault is for people. */
type BackupFaultCode =
  | 'NOT_A_BACKUP'
  | 'NEWER_FORMAT'
  | 'NEWER_LEVEL'
  | 'CUT_OFF'
  | 'DAMAGED'
  | 'KEY_NEEDED'
  | 'WRONG_KEY'
  | 'NO_SECRETS'
  | 'TOO_LARGE'
  | 'OTHER_CLUSTER'

/** The message is one sentence with a remedy and never quotes the content of the backup. */
export class BackupFault extends Error {
  override readonly name = 'BackupFault'
  readonly code: BackupFaultCode

  constructor(code: BackupFaultCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause })
    this.code = code
  }
}

/** @param what a sentence without its final period, such as `block 3 has another checksum`. */
export function damagedBackupFault(what: string, cause?: unknown): BackupFault {
  return new BackupFault('DAMAGED', `${what}; use another copy or an older backup`, cause)
}

/** @param bytes length of the file. */
export function truncatedBackupFault(bytes: number): BackupFault {
  return new BackupFault(
    'CUT_OFF',
    `the backup is cut off after ${bytes} bytes; use another copy or an older backup`,
  )
}
