import type { MessageHandler, RouterConnection } from './router-connection.ts'

/**
 * Handles one part of the protocol between controllers and routers, such as links or the data
 * model. `RouterChannels` calls the functions `on…` of all channel handlers in the order of
 * registration, and for a message the function that handles its content type. If that function
 * throws or rejects, only the channel of the sender is closed.
 */
export interface ChannelHandler {
  /** Functions for messages by content type; no two channel handlers may handle the same type. */
  readonly handlers: ReadonlyMap<number, MessageHandler>
  /**
   * Called after the controller has answered the router's hello; `RouterChannels.connections` then
   * contains the connection.
   */
  onConnected?(connection: RouterConnection): void
  /**
   * Called when the channel has closed, or before an operator's request closes it; not called if
   * the router has a newer channel.
   */
  onDisconnected?(connection: RouterConnection): void
  /**
   * Called when the router may no longer be connected, because its record was deleted or disabled,
   * it must enroll again, or it enrolled again with another key. Its channel closes directly after
   * this call. Not called for a renewed certificate with the same key.
   */
  onRevoked?(connection: RouterConnection): void
  /** Called every `routerSweepMs`, and soon after the record of a connected router has changed. */
  onSweep?(): void
  /** Called when the controller stops. */
  onStop?(): void
}
