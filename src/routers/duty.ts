import type { Message } from '../channel/frame.ts'
import type { RouterConnection } from './connection.ts'

/**
 * One subject that a controller and its routers deal with over their channels, as links or the data model. The channels call
 * each duty in the order in which they were given; whatever a message makes a duty throw closes the channel of its sender alone.
 */
export interface RouterDuty {
  /** By content type, and of one duty each. */
  readonly handlers: ReadonlyMap<number, (connection: RouterConnection, message: Message) => void>
  /** The hello is answered; the connection is among those of `RouterChannels.connections`. */
  onConnected?(connection: RouterConnection): void
  /** The channel is closed, and the router has not come back over another one. */
  onDisconnected?(connection: RouterConnection): void
  /** Every `routerSweepMs`. */
  onSweep?(): void
  /** The controller stops. */
  onStop?(): void
}
