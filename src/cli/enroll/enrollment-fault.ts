/** An enrollment cannot continue. The message is one sentence for the user, with the remedy. */
export class EnrollmentFault extends Error {
  override readonly name = 'EnrollmentFault'
}

/**
 * The enrollment was refused, by the controller or because the token has expired. The refused
 * request changed nothing.
 */
export class EnrollmentRefusedError extends EnrollmentFault {
  /** Error code of the API. */
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}
