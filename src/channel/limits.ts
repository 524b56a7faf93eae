/** Limits of one channel. Exceeding a limit closes the channel, except for the two rates. */
export const channelLimits = {
  /** Limit of a hello's headers and body, smaller because its sender is not authenticated yet. */
  helloHeadersBytesMax: 16_384,
  helloBodyBytesMax: 4192,
  /** Limit of every message after the hello. */
  frameHeadersBytesMax: 64 * 1024,
  frameHeadersMax: 128,
  frameBodyBytesMax: 16 * 1024 * 1024,
  /**
   * Sent bytes that the peer has not read. While the socket's send buffer is full, the channel does
   * not read from this peer.
   */
  unsentBytesMax: 8 * 1024 * 1024,
  /**
   * `trySend` sends only while fewer bytes than this wait. So data leaves room for messages that
   * cannot be dropped, and a peer that reads data slowly keeps its channel.
   */
  trySendBytesMax: 4 * 1024 * 1024,
  /** Requests waiting for a reply; the next one fails. */
  repliesWaitingMax: 256,
  replyTimeoutMs: 30_000,
  /** Rates for all messages except data; above them, the channel is not read for a second. */
  messagesPerSecondMax: 2000,
  bytesPerSecondMax: 16 * 1024 * 1024,
  heartbeatEveryMs: 10_000,
  /** Interval for checking whether a heartbeat or the reply to one is due. */
  checkEveryMs: 1000,
  silentMsMax: 30_000,
  firstSilentMsMax: 60_000,
} as const
export type ChannelLimits = { readonly [name in keyof typeof channelLimits]: number } & {
  /**
   * Content types of data messages. They are exempt from the rates, and they are read even while
   * the peer does not read; their handler must limit them. Absent: none.
   */
  readonly unmeteredTypes?: ReadonlySet<number>
  /** Maximum time for sending one message once it is first in the queue; absent: no limit. */
  readonly writeMsMax?: number
}
