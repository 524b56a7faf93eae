/** Limits of one channel. Exceeding a limit closes the channel, except for the two rates. */
export const channelLimits = {
  /** Limits of a hello, headers and body, whose sender is not authenticated yet. */
  helloHeadersBytesMax: 16_384,
  helloBodyBytesMax: 4192,
  /** Limit of every other message. */
  frameHeadersBytesMax: 64 * 1024,
  frameHeadersMax: 128,
  frameBodyBytesMax: 16 * 1024 * 1024,
  /**
   * Sent bytes that the peer has not read. While the socket asks for a pause, the channel does not
   * read from this peer.
   */
  unsentBytesMax: 8 * 1024 * 1024,
  /**
   * Waiting bytes up to which `trySend` sends. Data thus leaves room for messages that cannot be
   * dropped, and a slow reader of data keeps its channel.
   */
  trySendBytesMax: 4 * 1024 * 1024,
  /** Requests waiting for a reply; the next one fails. */
  repliesWaitingMax: 256,
  replyTimeoutMs: 30_000,
  /** Rates of messages except data; beyond them, the channel is not read for a second. */
  messagesPerSecondMax: 2000,
  bytesPerSecondMax: 16 * 1024 * 1024,
  heartbeatEveryMs: 10_000,
  /** Interval for checking whether a heartbeat or its answer is due. */
  checkEveryMs: 1000,
  silentMsMax: 30_000,
  firstSilentMsMax: 60_000,
} as const
export type ChannelLimits = { readonly [name in keyof typeof channelLimits]: number } & {
  /**
   * Content types of the channel's data. They are exempt from the rates, and they are read even
   * while the peer does not read. Their handler limits them. Absent: none.
   */
  readonly unmeteredTypes?: ReadonlySet<number>
  /** Maximum time for sending one message once it is first in the queue; absent: no limit. */
  readonly writeMsMax?: number
}
