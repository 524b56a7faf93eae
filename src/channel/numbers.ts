/** Content types of the channel itself; higher ones belong to the protocols over the channel. */
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

/** The largest of these keys; keys of a circuit's peer data are higher. */
export const CHANNEL_HEADERS_MAX = headerKey.helloRejectClass

/** Request headers in this range are repeated in the reply. */
export const reflectedKeys = { from: 128, to: 255 } as const

/** The hello and its answer are not part of the sequence. */
export const HELLO_SEQUENCE = -1
