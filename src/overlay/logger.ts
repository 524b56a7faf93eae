/** Logger of a router. */
export interface RouterProgramLogger {
  info(fields: Readonly<Record<string, unknown>>, message: string): void
  warn(fields: Readonly<Record<string, unknown>>, message: string): void
  error(fields: Readonly<Record<string, unknown>>, message: string): void
}

/** Why a router cannot start or go on: one sentence with its remedy. */
export class RouterFailure extends Error {
  override readonly name = 'RouterFailure'
}
