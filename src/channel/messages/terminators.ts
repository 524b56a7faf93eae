import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  CreateTerminatorResult,
  CreateTunnelTerminatorAnswerSchema,
  CreateTunnelTerminatorSchema,
  ModelPrecedence,
  RemoveTerminatorsSchema,
  UpdateTunnelTerminatorSchema,
} from '../../../proto/gen/router_pb.ts'
import { flagValue, textValue } from '../headers.ts'
import type { Outgoing } from '../frame.ts'
import { controlHeader, controlMessage } from './control.ts'

const precedences = {
  default: ModelPrecedence.DEFAULT,
  required: ModelPrecedence.REQUIRED,
  failed: ModelPrecedence.FAILED,
} as const

export type Precedence = keyof typeof precedences

export interface OfferedTerminator {
  readonly id: string
  readonly serviceId: string
  readonly cost: number
  readonly precedence: Precedence
  readonly instanceId: string
  /** Key of the host for all of its clients; absent: it has one for each. */
  readonly publicKey?: Uint8Array
}

/** @param startMs UTC: comes back in the answer. */
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
  return { contentType: controlMessage.createTunnelTerminatorV2, body }
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

/** @throws when the bytes are no such message. */
export function readTunnelTerminatorAnswer(body: Uint8Array): TerminatorAnswer {
  const { terminatorId, result, msg } = fromBinary(CreateTunnelTerminatorAnswerSchema, body)
  return { id: terminatorId, outcome: outcomes.get(result) ?? 'refused', message: msg }
}

export function removeTunnelTerminatorsMessage(ids: readonly string[]): Outgoing {
  const message = create(RemoveTerminatorsSchema, { terminatorIds: [...ids] })
  const body = toBinary(RemoveTerminatorsSchema, message)
  return { contentType: controlMessage.removeTerminators, body }
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
  return { contentType: controlMessage.updateTunnelTerminator, body }
}

export function tunnelHealthMessage(terminatorId: string, isHealthy: boolean): Outgoing {
  const headers = new Map([
    [controlHeader.terminatorId, textValue(terminatorId)],
    [controlHeader.checkPassed, flagValue(isHealthy)],
  ])
  return { contentType: controlMessage.tunnelHealthEvent, headers }
}
