import type { Channel } from '../../channel/channel.ts'
import type { ChannelMessage } from '../../channel/frame.ts'

/** A control channel that is open, and whose it is. */
export interface ControlConnection {
  /** Id of the controller, by its certificate. */
  readonly id: string
  /** It was dialed at. */
  readonly address: string
  /** SHA-256 of the public key in its certificate, hex. */
  readonly keySha256: string
  readonly version: string
  readonly channel: Channel
  /** UTC ms. */
  readonly connectedAtMs: number
}

/** Handlers of a router for the messages of a controller. */
export interface ControlHandlers {
  readonly onConnected: (connection: ControlConnection) => void
  readonly onMessage: (connection: ControlConnection, message: ChannelMessage) => void
  readonly onClosed: (connection: ControlConnection, reason: string) => void
}

export type ControlMessageHandler = (connection: ControlConnection, message: ChannelMessage) => void

/** Handlers of one subject of the router, by content type. */
export type ControlMessageTable = ReadonlyMap<number, ControlMessageHandler>
