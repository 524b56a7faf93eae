import type { ToldSession } from './control-messages.ts'

export interface EdgeApiSession extends ToldSession {
  /** The controller that has said so last: it is asked first for what the client wants. */
  readonly controllerId: string
}
