import { CertificateError } from './certificate.ts'
import { SecretFileError } from './key-file.ts'

/**
 * Fields of a log line about files that cannot be used. An operator corrects such a file by the
 * message alone; only a bug needs its stack.
 */
export function fileFaultFields(error: unknown): { readonly err?: unknown } {
  const isFault =
    error instanceof CertificateError ||
    error instanceof SecretFileError ||
    (error instanceof Error && 'syscall' in error)
  return isFault ? {} : { err: error }
}
