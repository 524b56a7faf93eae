/** Why a router or a tunnel cannot start or continue: one sentence with its remedy. */
export class ProgramFailure extends Error {
  override readonly name = 'ProgramFailure'
}
