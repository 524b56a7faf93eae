/** Logs a sentence with structured fields. */
export interface ServiceLogger {
  warn(fields: Readonly<Record<string, unknown>>, message: string): void
  error(fields: Readonly<Record<string, unknown>>, message: string): void
}
