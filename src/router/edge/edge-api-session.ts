import type { ClientApiSession } from '../../channel/messages/clients.ts'

export interface EdgeApiSession extends ClientApiSession {
  /** The controller that last reported it; it is asked first about requests of the client. */
  readonly controllerId: string
}
