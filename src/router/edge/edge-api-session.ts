import type { ClientApiSession } from '../../channel/messages/clients.ts'

export interface EdgeApiSession extends ClientApiSession {
  /**
   * The controller that last reported the session; '' for an OIDC session, which no controller
   * reports. Requests of its client are sent to this controller, if it is connected.
   */
  readonly controllerId: string
}
