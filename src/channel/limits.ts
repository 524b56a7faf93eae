/** Limits of one channel. The comment of a maximum describes the effect of exceeding it. */
export const channelLimits = {
  /**
   * Maximum bytes of the headers of a hello, smaller because its sender is not authenticated yet;
   * above that, the channel is closed.
   */
  helloHeadersBytesMax: 16_384,
  /** Maximum bytes of the body of a hello; above that, the channel is closed. */
  helloBodyBytesMax: 4192,
  /**
   * Maximum bytes of the headers of each message after the hello; above that, the channel is
   * closed.
   */
  frameHeadersBytesMax: 64 * 1024,
  /**
   * Maximum number of headers of one message, also of the hello; above that, the channel is
   * closed.
   */
  frameHeadersMax: 128,
  /**
   * Maximum bytes of the body of each message after the hello; above that, the channel is
   * closed.
   */
  frameBodyBytesMax: 16 * 1024 * 1024,
  /**
   * Maximum bytes that wait to be sent; one message may be larger if no bytes wait. While too many
   * bytes wait, the channel reads only data from this peer; above this limit, the channel is
   * closed.
   */
  unsentBytesMax: 8 * 1024 * 1024,
  /**
   * Maximum bytes that wait to be sent, including the new message, up to which `trySend` sends a
   * message; one message may be larger if no bytes wait. The remaining space is for messages that
   * cannot be dropped, so that a peer that reads data slowly keeps its channel.
   */
  trySendBytesMax: 4 * 1024 * 1024,
  /** Maximum requests that wait for a reply; a further request fails. */
  repliesWaitingMax: 256,
  /**
   * Default time to wait for the reply to a request; after that, the request fails and the
   * channel remains open.
   */
  replyTimeoutMs: 30_000,
  /** Maximum messages per second, except data; above that, the channel is not read for a second. */
  messagesPerSecondMax: 2000,
  /**
   * Maximum bytes per second of all messages except data; above that, the channel is not read
   * for a second.
   */
  bytesPerSecondMax: 16 * 1024 * 1024,
  /**
   * Interval of heartbeats; a heartbeat is sent with the next message, or in a separate message if
   * none is sent in time.
   */
  heartbeatEveryMs: 10_000,
  /** Interval for checking whether a heartbeat or the reply to one is due. */
  checkEveryMs: 1000,
  /** Maximum time without a reply to a heartbeat; after that, the channel is closed. */
  silentMsMax: 30_000,
  /** Maximum time without a reply to the first heartbeat; after that, the channel is closed. */
  firstSilentMsMax: 60_000,
} as const
export type ChannelLimits = { readonly [name in keyof typeof channelLimits]: number } & {
  /**
   * Content types of data messages. They are exempt from the rate limits, and the channel reads
   * them even while the peer does not read; their handler must limit them. Absent: no types are
   * exempt.
   */
  readonly unmeteredTypes?: ReadonlySet<number>
  /**
   * Maximum time for which the socket may accept none of the waiting messages; absent: no limit.
   */
  readonly writeMsMax?: number
}
