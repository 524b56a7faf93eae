import type { MessageHandler, RouterConnection } from './router-connection.ts'

/**
 * Handles one part of the protocol between controllers and routers, such as links or the data
 * model. Channels call all handlers in the order of their registration. If a handler throws or
 * rejects, only the channel of the sender is closed.
 */
export interface ChannelHandler {
  /** Functions for messages by content type; no two channel handlers may handle the same type. */
  readonly handlers: ReadonlyMap<number, MessageHandler>
  /**
   * Called after the controller has answered the router's hello; `RouterChannels.connections` then
   * contains the connection.
   */
  onConnected?(connection: RouterConnection): void
  /** Called when the channel has closed, unless the router has a newer channel. */
  onDisconnected?(connection: RouterConnection): void
  /**
   * Called when the router may no longer be connected, because an operator deleted or disabled its
   * record. Its channel closes directly after this call.
   */
  onRevoked?(connection: RouterConnection): void
  /** Called periodically, every `routerSweepMs`. */
  onSweep?(): void
  /** Called when the controller stops. */
  onStop?(): void
}
