import type { ClientApiSession } from '../../channel/messages/clients.ts'

export interface EdgeApiSession extends ClientApiSession {
  /**
   * The controller that last reported the session. Requests of its client go to this controller
   * first.
   */
  readonly controllerId: string
}
