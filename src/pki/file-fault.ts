import { CertificateError } from './certificate.ts'
import { SecretFileError } from './secret-file.ts'

/**
 * Log fields for a file that cannot be used. An operator can fix such a file with the message
 * alone, so the stack is logged only for a bug.
 */
export function fileFaultFields(error: unknown): { readonly err?: unknown } {
  const isFault =
    error instanceof CertificateError ||
    error instanceof SecretFileError ||
    (error instanceof Error && 'syscall' in error)
  return isFault ? {} : { err: error }
}
