import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { CertificateError } from '../../pki/certificate.ts'
import { SecretFileError } from '../../pki/secret-file.ts'
import { EnrollmentFault } from './enrollment-fault.ts'
import { errorMessage } from '../../lib/error-code.ts'

/**
 * Converts errors of an enrollment, and errors in certificate and key files, to a failure with one
 * sentence.
 * @throws {CommandFailure}
 */
export async function withOneSentenceErrors(enroll: () => Promise<void>): Promise<void> {
  try {
    await enroll()
  } catch (error) {
    const isTheirs =
      error instanceof EnrollmentFault ||
      error instanceof CertificateError ||
      error instanceof SecretFileError
    if (isTheirs) throw new CommandFailure(EXIT_FAILED, errorMessage(error), error)
    throw error
  }
}
