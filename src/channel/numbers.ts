/**
 * Content types of the channel itself; those above belong to the protocols that are spoken over it.
 */
export const contentType = {
  hello: 0,
  ping: 1,
  result: 2,
  latency: 3,
  heartbeat: 5,
} as const

/** Header keys of the channel itself: 0 to 127. */
export const headerKey = {
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

/** The largest of them: no peer data of a circuit has a key up to it. */
export const CHANNEL_HEADERS_MAX = headerKey.helloRejectClass

/** Headers of a request in this range come back in its reply. */
export const reflectedKeys = { from: 128, to: 255 } as const

/** Hello and its answer stand outside of the sequence of a channel. */
export const HELLO_SEQUENCE = -1
