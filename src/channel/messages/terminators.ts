import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'

import {
  CreateTerminatorResult,
  CreateTerminatorV2AnswerSchema,
  CreateTerminatorV2Schema,
  HealthEventSchema,
  UpdateEdgeTerminatorSchema,
  CreateTunnelTerminatorAnswerSchema,
  CreateTunnelTerminatorSchema,
  ModelPrecedence,
  RemoveTerminatorsSchema,
  TerminatorStatesSchema,
  UpdateTunnelTerminatorSchema,
  ValidateTerminatorsSchema,
} from '../../../proto/gen/router_pb.ts'
import { encodeFlag, encodeText } from '../headers.ts'
import type { OutboundMessage } from '../frame.ts'
import { controlHeaderKey, controlContentType } from './control.ts'

/** Precedences of terminators; the SDK protocol and the control protocol use the same numbers. */
export const terminatorPrecedence = {
  default: ModelPrecedence.DEFAULT,
  required: ModelPrecedence.REQUIRED,
  failed: ModelPrecedence.FAILED,
} as const

export type Precedence = keyof typeof terminatorPrecedence

/** Returns the default precedence for an unknown number. */
export function precedenceName(precedence: number): Precedence {
  if (precedence === ModelPrecedence.REQUIRED) return 'required'
  return precedence === ModelPrecedence.FAILED ? 'failed' : 'default'
}

/** The precedence for a number that a client sent in a bind request. */
export function toModelPrecedence(number: number): ModelPrecedence {
  return terminatorPrecedence[precedenceName(number)]
}

/** A terminator that the tunnel of a router requests. */
export interface RequestedTunnelTerminator {
  readonly id: string
  readonly serviceId: string
  readonly cost: number
  readonly precedence: Precedence
  readonly instanceId: string
  /**
   * One public key of the host for all clients; absent: the host uses a separate key for each
   * client.
   */
  readonly publicKey?: Uint8Array
}

/** @param startMs time of the request, UTC; the response repeats it. */
export function tunnelTerminatorRequestMessage(
  offered: RequestedTunnelTerminator,
  startMs: number,
): OutboundMessage {
  const { id, serviceId, cost, precedence, instanceId } = offered
  const message = create(CreateTunnelTerminatorSchema, {
    serviceId,
    address: id,
    cost,
    precedence: terminatorPrecedence[precedence],
    instanceId,
    startTime: BigInt(startMs),
  })
  const body = toBinary(CreateTunnelTerminatorSchema, message)
  return { contentType: controlContentType.createTunnelTerminatorV2, body }
}

/** A controller's response to a terminator request. */
export interface TerminatorResponse {
  readonly id: string
  readonly outcome: 'created' | 'busy' | 'taken' | 'refused'
  readonly message: string
}

const outcomes: ReadonlyMap<CreateTerminatorResult, TerminatorResponse['outcome']> = new Map([
  [CreateTerminatorResult.SUCCESS, 'created'],
  [CreateTerminatorResult.FAILED_BUSY, 'busy'],
  [CreateTerminatorResult.FAILED_ID_CONFLICT, 'taken'],
])

/** @throws when the bytes are not a valid message. */
export function readTunnelTerminatorResponse(body: Uint8Array): TerminatorResponse {
  const { terminatorId, result, msg } = fromBinary(CreateTunnelTerminatorAnswerSchema, body)
  return { id: terminatorId, outcome: outcomes.get(result) ?? 'refused', message: msg }
}

export function updateTunnelTerminatorMessage(
  terminatorId: string,
  cost: number,
  precedence: Precedence,
): OutboundMessage {
  const message = create(UpdateTunnelTerminatorSchema, {
    terminatorId,
    cost,
    precedence: terminatorPrecedence[precedence],
    updateCost: true,
    updatePrecedence: true,
  })
  const body = toBinary(UpdateTunnelTerminatorSchema, message)
  return { contentType: controlContentType.updateTunnelTerminator, body }
}

export function tunnelHealthMessage(terminatorId: string, isHealthy: boolean): OutboundMessage {
  const headers = new Map([
    [controlHeaderKey.terminatorId, encodeText(terminatorId)],
    [controlHeaderKey.checkPassed, encodeFlag(isHealthy)],
  ])
  return { contentType: controlContentType.tunnelHealthEvent, headers }
}

export function terminatorRequestMessage(
  asked: MessageInitShape<typeof CreateTerminatorV2Schema>,
): OutboundMessage {
  return {
    contentType: controlContentType.createTerminatorV2,
    body: toBinary(CreateTerminatorV2Schema, create(CreateTerminatorV2Schema, asked)),
  }
}

/** @throws when the bytes are not a valid message. */
export function readTerminatorResponse(body: Uint8Array) {
  return fromBinary(CreateTerminatorV2AnswerSchema, body)
}

export function removeTerminatorsMessage(ids: readonly string[]): OutboundMessage {
  const message = create(RemoveTerminatorsSchema, { terminatorIds: [...ids] })
  return {
    contentType: controlContentType.removeTerminators,
    body: toBinary(RemoveTerminatorsSchema, message),
  }
}

export function updateEdgeTerminatorMessage(
  asked: MessageInitShape<typeof UpdateEdgeTerminatorSchema>,
): OutboundMessage {
  return {
    contentType: controlContentType.updateEdgeTerminator,
    body: toBinary(UpdateEdgeTerminatorSchema, create(UpdateEdgeTerminatorSchema, asked)),
  }
}

export function healthEventMessage(
  asked: MessageInitShape<typeof HealthEventSchema>,
): OutboundMessage {
  return {
    contentType: controlContentType.healthEvent,
    body: toBinary(HealthEventSchema, create(HealthEventSchema, asked)),
  }
}

/**
 * Reads the terminators in a controller's validation request.
 * @throws when the bytes are not a validation request.
 */
export function readTerminatorQuery(body: Uint8Array) {
  return fromBinary(ValidateTerminatorsSchema, body)
}

/** Result of creating a terminator, which the controller sends to the router. */
export interface TerminatorCreateResult {
  readonly result: CreateTerminatorResult
  readonly msg?: string
  readonly errorCode?: number
  readonly retryHint?: number
}

/** A controller's response to a router that requested a terminator for a client. */
export function terminatorCreateResponse(
  terminatorId: string,
  result: TerminatorCreateResult,
): OutboundMessage {
  const answer = create(CreateTerminatorV2AnswerSchema, { ...result, terminatorId })
  return {
    contentType: controlContentType.createTerminatorV2Response,
    body: toBinary(CreateTerminatorV2AnswerSchema, answer),
  }
}

/** A router's response with the states of its terminators. */
export function terminatorStatesMessage(
  states: Exclude<MessageInitShape<typeof TerminatorStatesSchema>['states'], undefined>,
): OutboundMessage {
  return {
    contentType: controlContentType.validateTerminatorsV2Response,
    body: toBinary(TerminatorStatesSchema, create(TerminatorStatesSchema, { states })),
  }
}
