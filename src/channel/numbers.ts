/** Content types of the channel itself; the protocols over the channel use higher numbers. */
export const channelContentType = {
  hello: 0,
  ping: 1,
  result: 2,
  latency: 3,
  heartbeat: 5,
} as const

/** Header keys of the channel itself: 0 to 127. */
export const channelHeaderKey = {
  connectionId: 0,
  replyFor: 1,
  resultSuccess: 2,
  helloVersion: 4,
  heartbeat: 5,
  heartbeatResponse: 6,
  type: 7,
  id: 8,
  isGrouped: 9,
  groupSecret: 10,
  isFirstGroupConnection: 11,
  helloRejectClass: 13,
} as const

/** The largest channel header key; the keys of a circuit's peer data are higher. */
export const CHANNEL_HEADERS_MAX = channelHeaderKey.helloRejectClass

/**
 * Range of header keys. A reply repeats the headers of its request that have keys in this range.
 */
export const reflectedHeaderKeys = { from: 128, to: 255 } as const

/** Sequence number of the hello and of its reply, which are not part of the numbered sequence. */
export const HELLO_SEQUENCE = -1
