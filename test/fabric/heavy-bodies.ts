import { create, toBinary } from '@bufbuild/protobuf'

import {
  CircuitConfirmationSchema,
  ConnectEventsSchema,
  FaultSchema,
  FaultSubject,
  MetricsSchema,
  RouterLinksSchema,
} from '../../proto/gen/router_pb.ts'
import { messageBounds } from '../../src/channel/message-bounds.ts'
import { protobufBodyFault } from '../../src/channel/wire-scan.ts'

// The bodies that are most expensive to decode for their size, and the largest that OpenZiti
// routers may send.

const MIB = 1024 * 1024

/** A field with this many empty values; the field is a string or a message. */
export function empties(field: number, count: number): Uint8Array {
  const body = new Uint8Array(2 * count)
  for (let at = 0; at < body.length; at += 2) body[at] = field * 8 + 2
  return body
}

/** A field with one value that consists of these bytes. */
export function wrapped(field: number, bytes: Uint8Array): Uint8Array {
  const head = [field * 8 + 2]
  for (let left = bytes.length; ; left = Math.floor(left / 128)) {
    head.push(left < 128 ? left : (left % 128) + 128)
    if (left < 128) break
  }
  return Buffer.concat([Uint8Array.from(head), bytes])
}

/** Bodies of nearly this many bytes: name, content type and body of each. */
export function hostileBodies(
  bytes = 16 * MIB,
): readonly (readonly [string, number, Uint8Array])[] {
  const filled = bytes / 2 - 32
  const fault = { subject: FaultSubject.FORWARD, id: ' '.repeat(bytes - 64) }
  return [
    ['empty links', 1035, empties(1, filled)],
    ['one link with many sockets', 1035, wrapped(1, wrapped(7, empties(2, filled)))],
    ['empty connections of clients', 20_415, empties(1, filled)],
    ['one client with many connections', 20_415, wrapped(1, empties(3, filled))],
    ['empty listeners', 1056, empties(1, filled)],
    ['a fault of spaces', 1004, toBinary(FaultSchema, create(FaultSchema, fault))],
    ['empty circuits to confirm', 1034, empties(1, filled)],
    ['empty terminators to remove', 1038, empties(1, filled)],
    ['empty tokens in use', 20_203, empties(1, filled)],
    ['empty tokens to validate', 20_213, empties(1, filled)],
    ['empty figures', 1007, empties(8, filled)],
    ['empty fingerprints', 1036, empties(2, filled)],
    ['empty certificate requests', 20_302, empties(1, filled)],
  ]
}

type Bound = keyof typeof messageBounds

/** As many empty values of a field as its bound permits. */
function within(name: Bound, field: number): [string, number, Uint8Array] {
  const { number, schema, elementsMax, bytesMax } = messageBounds[name]
  const body = empties(field, bytesMax / 2 - 1)
  const fits = (count: number): boolean =>
    schema !== null && protobufBodyFault(schema, body.subarray(0, 2 * count), elementsMax) === null
  let [count, beyond] = [1, bytesMax / 2]
  while (beyond - count > 1) {
    const middle = Math.floor((count + beyond) / 2)
    if (fits(middle)) count = middle
    else beyond = middle
  }
  return [`${count} empty in ${name}`, number, empties(field, count)]
}

const router = 'a router of 12'
const address = 'tls:192.0.2.100:65000'

/** The most expensive bodies within the bounds. */
export function heaviestBodies(): readonly (readonly [string, number, Uint8Array])[] {
  const sockets = Array.from({ length: 4 }, () => ({
    type: 'link.default',
    localAddr: address,
    remoteAddr: address,
  }))
  const links = Array.from({ length: 5400 }, (_, at) => ({
    id: `${at} of the links of one router`,
    destRouterId: router,
    linkProtocol: 'tls',
    dialAddress: address,
    iteration: 1,
    connState: { stateIteration: 1, conns: sockets },
  }))
  const events = Array.from({ length: 34_000 }, (_, at) => ({
    identityId: `identity ${at}`,
    isConnected: true,
    connectTimes: [{ connectTime: 1_700_000_000_000n, srcAddr: address, dstAddr: address }],
  }))
  const histograms = Object.fromEntries(
    Array.from({ length: 16_000 }, (_, at) => [
      `link.${at} of the links of one router.latency`,
      { count: 1n, max: 2n, mean: 1.5, min: 1n },
    ]),
  )
  const ids = Array.from({ length: 20_000 }, (_, at) => `${at} of the circuits of one router`)
  const forward = {
    subject: FaultSubject.FORWARD,
    id: ids.map((id) => id.replaceAll(' ', '-')).join(' '),
  }
  const aMinuteOfNs = 60_000_000_000n
  const idleTimes = Object.fromEntries(ids.map((id) => [id, aMinuteOfNs]))
  const confirmed = { circuitIds: ids, idleTimes }
  return [
    within('routerLinks', 1),
    within('connectEvents', 1),
    within('metrics', 8),
    within('updateLinkListeners', 1),
    within('circuitConfirmation', 1),
    within('removeTerminators', 1),
    within('apiSessionHeartbeat', 1),
    within('validateSessions', 1),
    within('verifyRouter', 2),
    within('createTerminatorV2', 3),
    [
      '5,400 links of four sockets',
      1035,
      toBinary(RouterLinksSchema, create(RouterLinksSchema, { links, fullRefresh: true })),
    ],
    [
      '34,000 clients',
      20_415,
      toBinary(ConnectEventsSchema, create(ConnectEventsSchema, { events, fullState: true })),
    ],
    ['16,000 histograms', 1007, toBinary(MetricsSchema, create(MetricsSchema, { histograms }))],
    [
      '20,000 circuits that do not go on',
      1004,
      toBinary(FaultSchema, create(FaultSchema, forward)),
    ],
    [
      '20,000 circuits to confirm, with how long nothing passed',
      1034,
      toBinary(CircuitConfirmationSchema, create(CircuitConfirmationSchema, confirmed)),
    ],
  ]
}
