import type { MessageHandler, RouterConnection } from './router-connection.ts'

/**
 * Handles one subject of the channels between controllers and routers, such as links or the data
 * model. The channels call all handlers in the order of registration. If a handler throws or
 * rejects, only the sender's channel is closed.
 */
export interface ChannelHandler {
  /** Message handlers by content type; each type may belong to only one channel handler. */
  readonly handlers: ReadonlyMap<number, MessageHandler>
  /**
   * Called after the controller has answered the router's hello; `RouterChannels.connections` then
   * contains the connection.
   */
  onConnected?(connection: RouterConnection): void
  /** Called when the channel is closed, unless the router already has a newer channel. */
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
