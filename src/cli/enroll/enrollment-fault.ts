/** Why an enrollment cannot go on: one sentence for a person, with what to do about it. */
export class EnrollmentFault extends Error {
  override readonly name = 'EnrollmentFault'
}

/** The enrollment was refused for good, and nothing was changed by this run. */
export class EnrollmentRefused extends EnrollmentFault {
  /** Code, as the API names it. */
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}
