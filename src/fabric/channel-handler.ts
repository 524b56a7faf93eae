import type { MessageHandler, RouterConnection } from './connection.ts'

/**
 * Handles one subject of the channels between controllers and routers, such as links or the data
 * model. The channels call these handlers in the order of registration. If a handler throws or
 * rejects, only the channel of the message's sender is closed.
 */
export interface ChannelHandler {
  /** Handlers by content type; only one channel handler may handle each type. */
  readonly handlers: ReadonlyMap<number, MessageHandler>
  /**
   * Called when the hello is answered, and `RouterChannels.connections` contains the connection.
   */
  onConnected?(connection: RouterConnection): void
  /** Called when the channel is closed, unless the router already has a newer one. */
  onDisconnected?(connection: RouterConnection): void
  /**
   * Called when the router may no longer be connected, because its record was deleted or disabled.
   * Its channel is closed right after this call.
   */
  onRevoked?(connection: RouterConnection): void
  /** Called every `routerSweepMs`. */
  onSweep?(): void
  /** Called when the controller stops. */
  onStop?(): void
}
