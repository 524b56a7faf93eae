/** Log function of the program: fields, then a sentence. */
export interface ServiceLogger {
  warn(fields: Readonly<Record<string, unknown>>, message: string): void
  error(fields: Readonly<Record<string, unknown>>, message: string): void
}
