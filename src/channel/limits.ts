/**
 * Everything of one channel that could grow. What is beyond a limit closes it, but for the two
 * rates.
 */
export const channelLimits = {
  /** Bound of a hello, headers and body: its sender is not known yet. */
  helloHeadersBytesMax: 16_384,
  helloBodyBytesMax: 4192,
  /** Bound of every other message. */
  frameHeadersBytesMax: 64 * 1024,
  frameHeadersMax: 128,
  frameBodyBytesMax: 16 * 1024 * 1024,
  /**
   * Bytes that were sent and the peer has not read; it is not read from meanwhile, once the socket
   * asks for a pause.
   */
  unsentBytesMax: 8 * 1024 * 1024,
  /**
   * Bytes that may wait when `trySend` adds to them: data leaves room for what cannot be dropped,
   * so a slow reader of it keeps its channel.
   */
  trySendBytesMax: 4 * 1024 * 1024,
  /** Requests that wait for their reply; the next one fails. */
  repliesWaitingMax: 256,
  replyTimeoutMs: 30_000,
  /** Beyond these rates, which data does not count to, the channel is not read for a second. */
  messagesPerSecondMax: 2000,
  bytesPerSecondMax: 16 * 1024 * 1024,
  heartbeatEveryMs: 10_000,
  /** How often it is judged whether a heartbeat is due, or its answer. */
  checkEveryMs: 1000,
  silentMsMax: 30_000,
  firstSilentMsMax: 60_000,
} as const
export type ChannelLimits = { readonly [name in keyof typeof channelLimits]: number } & {
  /**
   * Content types of the data that the channel is for: the rates do not hold for them, and they are
   * read while the peer does not read. Their handler bounds what becomes of them. Absent: none.
   */
  readonly unmeteredTypes?: ReadonlySet<number>
  /** Time that one message may take from its turn to be sent; absent: any. */
  readonly writeMsMax?: number
}
