import type { MessageHandler, RouterConnection } from './connection.ts'

/**
 * One subject of the channels between controllers and routers, such as links or the data model. The
 * channels call duties in registration order. If a handler throws or rejects, only the channel of
 * the message's sender is closed.
 */
export interface RouterDuty {
  /** Handlers by content type; only one duty may handle each type. */
  readonly handlers: ReadonlyMap<number, MessageHandler>
  /** The hello is answered, and `RouterChannels.connections` contains the connection. */
  onConnected?(connection: RouterConnection): void
  /** The channel is closed, and the router has no newer one. */
  onDisconnected?(connection: RouterConnection): void
  /**
   * The router may no longer be connected: its record was deleted or disabled. Its channel is
   * closed right after this call.
   */
  onRevoked?(connection: RouterConnection): void
  /** Every `routerSweepMs`. */
  onSweep?(): void
  /** The controller is stopping. */
  onStop?(): void
}
