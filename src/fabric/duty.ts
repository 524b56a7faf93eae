import type { MessageHandler, RouterConnection } from './connection.ts'

/**
 * One subject that a controller and its routers deal with over their channels, as links or the data
 * model. The channels call each duty in the order in which they were given; whatever a message
 * makes a duty throw, or reject, closes the channel of its sender alone.
 */
export interface RouterDuty {
  /** Handlers by content type, each of one duty. */
  readonly handlers: ReadonlyMap<number, MessageHandler>
  /** The hello is answered; the connection is among those of `RouterChannels.connections`. */
  onConnected?(connection: RouterConnection): void
  /** The channel is closed, and the router has not come back over another one. */
  onDisconnected?(connection: RouterConnection): void
  /**
   * A router may not be connected any more: its record is gone, or says so. Its channel is closed
   * right after.
   */
  onRevoked?(connection: RouterConnection): void
  /** Every `routerSweepMs`. */
  onSweep?(): void
  /** The controller stops. */
  onStop?(): void
}
