import { CertificateError } from './certificate.ts'
import { SecretFileError } from './secret-file.ts'

/**
 * Log fields for an error about an unusable file. The message is enough for an operator to fix the
 * file, so the stack is logged only for a bug in this program.
 */
export function fileFaultFields(error: unknown): { readonly err?: unknown } {
  const isFault =
    error instanceof CertificateError ||
    error instanceof SecretFileError ||
    (error instanceof Error && 'syscall' in error)
  return isFault ? {} : { err: error }
}
