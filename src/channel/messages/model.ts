import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  SubscribeToDataModelSchema,
  ValidateModelAnswerSchema,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage, OutboundMessage } from '../frame.ts'
import { readText, readUint64 } from '../headers.ts'
import { controlHeaderKey, controlContentType } from './control.ts'

/** One record of the data model that differs between a router and a controller. */
export interface ModelDifference {
  readonly kind: string
  readonly id: string
  readonly difference: 'added' | 'modified' | 'removed'
  readonly detail: string
}

/** Record counts by kind in both models, and their differences. */
export interface ModelComparison {
  /** Number of records by kind. */
  readonly own: Readonly<Record<string, number>>
  readonly theirs: Readonly<Record<string, number>>
  readonly differences: readonly ModelDifference[]
}

/** Request of a router to receive changes of the data model. */
export interface SubscribeRequest {
  /** Index and timeline of the router's model; 0 and '' if the router has no model yet. */
  readonly index: bigint
  readonly timelineId: string
  readonly seconds: number
  /** True if the router only extends its current subscription. */
  readonly renews: boolean
  readonly subscriptionId: string
}

export function subscribeMessage(subscribe: SubscribeRequest): OutboundMessage {
  const message = create(SubscribeToDataModelSchema, {
    currentIndex: subscribe.index,
    timelineId: subscribe.timelineId,
    subscriptionDurationSeconds: subscribe.seconds,
    renew: subscribe.renews,
    subscriptionId: subscribe.subscriptionId,
  })
  return {
    contentType: controlContentType.subscribeToDataModel,
    body: toBinary(SubscribeToDataModelSchema, message),
  }
}

/** @throws when the bytes are not a valid message. */
export function readSubscribeRequest(body: Uint8Array): SubscribeRequest {
  const { currentIndex, timelineId, subscriptionDurationSeconds, renew, subscriptionId } =
    fromBinary(SubscribeToDataModelSchema, body)
  return {
    index: currentIndex,
    timelineId,
    seconds: subscriptionDurationSeconds,
    renews: renew,
    subscriptionId,
  }
}

/** Null if the message does not belong to a subscription to the data model. */
export function readSubscriptionId({ headers }: ChannelMessage): string | null {
  return readText(headers, controlHeaderKey.routerDataModelSubscriptionId)
}

/** The index of a controller's model. */
export function readModelIndex({ headers }: ChannelMessage): bigint | null {
  return readUint64(headers, controlHeaderKey.routerDataModelIndex)
}

export function modelValidatedMessage({
  own,
  theirs,
  differences,
}: ModelComparison): OutboundMessage {
  const answer = create(ValidateModelAnswerSchema, {
    origEntityCounts: { ...theirs },
    copyEntityCounts: { ...own },
    diffs: differences.map(({ kind, id, difference, detail }) => ({
      entityType: kind,
      entityId: id,
      diffType: difference,
      detail,
    })),
  })
  return {
    contentType: controlContentType.validateDataStateResponse,
    body: toBinary(ValidateModelAnswerSchema, answer),
  }
}
