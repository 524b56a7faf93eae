import type { ClientApiSession } from '../../channel/messages/clients.ts'

export interface EdgeApiSession extends ClientApiSession {
  /** The controller that has said so last: it is asked first for what the client wants. */
  readonly controllerId: string
}
