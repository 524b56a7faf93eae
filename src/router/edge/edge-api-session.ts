import type { ClientApiSession } from '../../channel/messages/clients.ts'

export interface EdgeApiSession extends ClientApiSession {
  /** The controller that last reported it; requests of the client go to it first. */
  readonly controllerId: string
}
