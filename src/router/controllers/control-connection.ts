import type { Channel } from '../../channel/channel.ts'
import type { ChannelMessage } from '../../channel/frame.ts'

/** An open control channel and its controller. */
export interface ControlConnection {
  /** Controller ID, from the controller's certificate. */
  readonly id: string
  /** The address that was dialed. */
  readonly address: string
  /** SHA-256 of the public key in the controller's certificate, hex. */
  readonly keySha256: string
  readonly version: string
  readonly channel: Channel
  /** Time of the connection, UTC ms. */
  readonly connectedAtMs: number
}

/** Handlers for messages from controllers. */
export interface ControlHandlers {
  readonly onConnected: (connection: ControlConnection) => void
  readonly onMessage: (connection: ControlConnection, message: ChannelMessage) => void
  readonly onClosed: (connection: ControlConnection, reason: string) => void
}

export type ControlMessageHandler = (connection: ControlConnection, message: ChannelMessage) => void

/** Handlers that one part of the router provides, by content type. */
export type ControlMessageTable = ReadonlyMap<number, ControlMessageHandler>
