import type { ReceivedSession } from './control-messages.ts'

export interface EdgeApiSession extends ReceivedSession {
  /** The controller that has said so last: it is asked first for what the client wants. */
  readonly controllerId: string
}
