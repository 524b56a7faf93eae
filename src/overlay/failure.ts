/**
 * A router or tunnel cannot start or continue. The message is one sentence, with the remedy where
 * there is one.
 */
export class ProgramFailure extends Error {
  override readonly name = 'ProgramFailure'
}
