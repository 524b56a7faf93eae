import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import { type CircuitRecord, CircuitRecordSchema } from '../../../proto/gen/soft_pb.ts'
import { copyPrefix } from '../../lib/text/copy-prefix.ts'
import type { PathLink } from '../../ports/live-table.ts'
import { toSafeInteger } from '../../lib/text/safe-integer.ts'
import { routerLimits } from '../limits.ts'
import type { Circuit } from './circuit-table.ts'
import { isCircuitId } from './circuit-ids.ts'

const { circuitRoutersMax, routerTextCharactersMax } = routerLimits

/** Encodes a circuit for the other controllers, so that one of them can become its owner. */
export function encodeCircuit(circuit: Circuit): Uint8Array {
  const { live, ends, hostId, instanceId, isOfTunnel, isHostedByTunnel, turn, path } = circuit
  const { clientId, sessionId, serviceId, terminatorId } = live
  const record = create(CircuitRecordSchema, {
    clientId,
    sessionId,
    serviceId,
    terminatorId,
    hostId,
    instanceId,
    turn,
    createdAtMs: BigInt(live.createdAt),
    ingress: ends.ingress,
    egress: ends.egress,
    ofTunnel: isOfTunnel,
    hostedByTunnel: isHostedByTunnel,
    cost: path.cost,
    routerIds: [...path.routerIds],
    links: path.links.map(({ id, iteration, sourceRouterId }, at) => ({
      id,
      iteration,
      backwards: sourceRouterId !== path.routerIds[at],
    })),
  })
  return toBinary(CircuitRecordSchema, record)
}

/**
 * Decodes the circuit in a record that another controller published; null if the record is invalid.
 * @throws when the bytes cannot be decoded, or a number exceeds the safe integers.
 */
export function decodeCircuit(id: string, bytes: Uint8Array): Circuit | null {
  const record = fromBinary(CircuitRecordSchema, bytes)
  if (!isCircuitId(id) || !isBounded(record)) return null
  const { routerIds, links } = record
  const text = (value: string): string => copyPrefix(value, routerTextCharactersMax)
  return {
    live: {
      clientId: text(record.clientId),
      sessionId: text(record.sessionId),
      serviceId: text(record.serviceId),
      terminatorId: text(record.terminatorId),
      createdAt: toSafeInteger(record.createdAtMs),
    },
    ends: { id, ingress: text(record.ingress), egress: text(record.egress) },
    hostId: text(record.hostId),
    instanceId: text(record.instanceId),
    isOfTunnel: record.ofTunnel,
    isHostedByTunnel: record.hostedByTunnel,
    turn: record.turn,
    path: {
      routerIds: routerIds.map(text),
      cost: record.cost,
      links: links.map(({ id: linkId, iteration, backwards }, at): PathLink => {
        const [one = '', other = ''] = routerIds.slice(at, at + 2).map(text)
        return {
          id: text(linkId),
          iteration,
          sourceRouterId: backwards ? other : one,
          destRouterId: backwards ? one : other,
        }
      }),
    },
  }
}

/**
 * Whether the path in another controller's record is consistent and within its maximum length, and
 * its endpoint addresses are acceptable.
 */
function isBounded({ routerIds, links, ingress, egress }: CircuitRecord): boolean {
  const isPath = routerIds.length > 0 && links.length === routerIds.length - 1
  const isOfEnds = isCircuitId(ingress) && isCircuitId(egress)
  // @guard circuits-taken-over--length
  return isPath && isOfEnds && routerIds.length <= circuitRoutersMax
}
