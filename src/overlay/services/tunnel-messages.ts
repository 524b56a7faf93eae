import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  CreateCircuitAnswerSchema,
  CreateTerminatorResult,
  CreateTunnelCircuitSchema,
  CreateTunnelTerminatorAnswerSchema,
  CreateTunnelTerminatorSchema,
  ModelPrecedence,
  RemoveTerminatorsSchema,
  UpdateTunnelTerminatorSchema,
} from '../../../proto/gen/router_pb.ts'
import type { Outgoing } from '../../channel/channel.ts'
import { flagValue, textValue } from '../../channel/headers.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import type { CircuitExchange, CircuitData } from '../circuits/circuit-source.ts'
import type { Precedence } from './host-config.ts'

/** Content types of messages about tunnels between routers and controllers. */
export const tunnelMessage = {
  removeTerminators: 1038,
  error: 20_002,
  createCircuit: 20_220,
  circuitCreated: 20_221,
  updateTerminator: 20_408,
  terminatorUpdated: 20_409,
  healthEvent: 20_412,
  createTerminator: 20_413,
  terminatorCreated: 20_414,
} as const

/** Keys of peer data between the ends of a circuit. */
export const peerKey = {
  publicKey: 1003,
  appData: 1011,
  terminatorLocalAddress: 1110,
  terminatorRemoteAddress: 1111,
  initiatorLocalAddress: 1112,
  initiatorRemoteAddress: 1113,
} as const

const TERMINATOR_ID_HEADER = 1022
const CHECK_PASSED_HEADER = 1023
const REASON_BYTES_MAX = 200

const precedences = {
  default: ModelPrecedence.DEFAULT,
  required: ModelPrecedence.REQUIRED,
  failed: ModelPrecedence.FAILED,
} as const

export interface OfferedTerminator {
  readonly id: string
  readonly serviceId: string
  readonly cost: number
  readonly precedence: Precedence
  readonly instanceId: string
  /** Key of the host for all clients; absent: a key for each circuit. */
  readonly publicKey?: Uint8Array
}

/** @param startMs UTC; the answer repeats it. */
export function createTunnelTerminatorMessage(
  offered: OfferedTerminator,
  startMs: number,
): Outgoing {
  const { id, serviceId, cost, precedence, instanceId } = offered
  const message = create(CreateTunnelTerminatorSchema, {
    serviceId,
    address: id,
    cost,
    precedence: precedences[precedence],
    instanceId,
    startTime: BigInt(startMs),
  })
  const body = toBinary(CreateTunnelTerminatorSchema, message)
  return { contentType: tunnelMessage.createTerminator, body }
}

export interface TerminatorAnswer {
  readonly id: string
  readonly outcome: 'created' | 'busy' | 'taken' | 'refused'
  readonly message: string
}

const outcomes: ReadonlyMap<CreateTerminatorResult, TerminatorAnswer['outcome']> = new Map([
  [CreateTerminatorResult.SUCCESS, 'created'],
  [CreateTerminatorResult.FAILED_BUSY, 'busy'],
  [CreateTerminatorResult.FAILED_ID_CONFLICT, 'taken'],
])

/** @throws when the bytes are not a valid message. */
export function readTunnelTerminatorAnswer(body: Uint8Array): TerminatorAnswer {
  const { terminatorId, result, msg } = fromBinary(CreateTunnelTerminatorAnswerSchema, body)
  return { id: terminatorId, outcome: outcomes.get(result) ?? 'refused', message: msg }
}

export function removeTunnelTerminatorsMessage(ids: readonly string[]): Outgoing {
  const message = create(RemoveTerminatorsSchema, { terminatorIds: [...ids] })
  const body = toBinary(RemoveTerminatorsSchema, message)
  return { contentType: tunnelMessage.removeTerminators, body }
}

export function updateTunnelTerminatorMessage(
  terminatorId: string,
  cost: number,
  precedence: Precedence,
): Outgoing {
  const message = create(UpdateTunnelTerminatorSchema, {
    terminatorId,
    cost,
    precedence: precedences[precedence],
    updateCost: true,
    updatePrecedence: true,
  })
  const body = toBinary(UpdateTunnelTerminatorSchema, message)
  return { contentType: tunnelMessage.updateTerminator, body }
}

export function tunnelHealthMessage(terminatorId: string, isHealthy: boolean): Outgoing {
  const headers = new Map([
    [TERMINATOR_ID_HEADER, textValue(terminatorId)],
    [CHECK_PASSED_HEADER, flagValue(isHealthy)],
  ])
  return { contentType: tunnelMessage.healthEvent, headers }
}

export function createTunnelCircuitMessage(
  serviceName: string,
  instanceId: string,
  peerData: ReadonlyMap<number, Uint8Array>,
): Outgoing {
  const message = create(CreateTunnelCircuitSchema, {
    serviceName,
    instanceId,
    peerData: Object.fromEntries(peerData),
  })
  const body = toBinary(CreateTunnelCircuitSchema, message)
  return { contentType: tunnelMessage.createCircuit, body }
}

export interface CreatedCircuit {
  readonly id: string
  readonly address: string
  readonly peerData: ReadonlyMap<number, Uint8Array>
}

/**
 * @returns the circuit, or a text that explains why there is none.
 * @throws when the bytes are not a valid message.
 */
export function readCreatedCircuit({ contentType, body }: ChannelMessage): CreatedCircuit | string {
  if (contentType !== tunnelMessage.circuitCreated) {
    const text = Buffer.from(body.subarray(0, REASON_BYTES_MAX)).toString('utf8')
    return text.replaceAll(/[^\x20-\x7e]+/g, ' ') || `answered by a message ${contentType}`
  }
  const { circuitId, address, peerData } = fromBinary(CreateCircuitAnswerSchema, body)
  if (circuitId === '' || address === '') return 'the controller has answered without a circuit'
  const data = Object.entries(peerData).map(([key, value]) => [Number(key), value] as const)
  return { id: circuitId, address, peerData: new Map(data) }
}

/** Circuit request of a tunnel to a controller. */
export function tunnelExchange(service: string, circuitData: CircuitData): CircuitExchange {
  return {
    message: createTunnelCircuitMessage(service, circuitData.instanceId, circuitData.peerData),
    read: (answer) => {
      const created = readCreatedCircuit(answer)
      if (typeof created === 'string') return created
      return circuitData.take(created, created.peerData) ?? created
    },
  }
}

/** Sends and expects no data of the other end. */
export const noCircuitData: CircuitData = { instanceId: '', peerData: new Map(), take: () => null }
