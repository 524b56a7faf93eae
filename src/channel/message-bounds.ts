import type { DescMessage } from '@bufbuild/protobuf'

import {
  ApiSessionAddedSchema,
  ApiSessionHeartbeatSchema,
  ApiSessionRemovedSchema,
  CircuitConfirmationSchema,
  ClientHelloSchema,
  ClientPostureSchema,
  ConnectEventsSchema,
  CreateCircuitSchema,
  CreateTerminatorV2AnswerSchema,
  CreateFabricCircuitSchema,
  CreateTerminatorV2Schema,
  CreateTunnelCircuitSchema,
  CreateTunnelTerminatorSchema,
  DataStateSchema,
  ExtendRouterSchema,
  FaultSchema,
  HealthEventSchema,
  InspectAnswerSchema,
  InspectRequestSchema,
  InterfacesSchema,
  LinkListenersSchema,
  LinkStateUpdateSchema,
  MetricsSchema,
  ModelChangeSetSchema,
  PeerStateChangesSchema,
  PostureResponsesSchema,
  RemoveTerminatorSchema,
  RemoveTerminatorsSchema,
  RouterAlertsSchema,
  RouterLinksSchema,
  SessionRemovedSchema,
  RouteSchema,
  SubscribeToDataModelSchema,
  TerminatorStatesSchema,
  UnrouteSchema,
  UpdateClusterLeaderSchema,
  UpdateCtrlAddressesSchema,
  UpdateEdgeTerminatorSchema,
  UpdateTerminatorSchema,
  ValidateModelSchema,
  UpdateTunnelTerminatorSchema,
  ValidateSessionsSchema,
  ValidateTerminatorsSchema,
  VerifyRouterCertificateSchema,
  VerifyRouterSchema,
} from '../../proto/gen/router_pb.ts'
import type { ChannelMessage } from './frame.ts'
import { controlContentType } from './messages/control.ts'
import { edgeContentType } from './messages/edge.ts'
import { circuitContentType } from './messages/payload.ts'
import { channelContentType } from './numbers.ts'
import { protobufBodyFault, FIELD_ELEMENTS_MAX } from './wire-scan.ts'

/** Limit of the body of one message, checked before it is decoded. */
interface MessageBound {
  readonly number: number
  /** Null if the message is not a protobuf message, or if no code here decodes it. */
  readonly schema: DescMessage | null
  /** Maximum bytes of the body; a longer body is discarded as it arrives. */
  readonly bytesMax: number
  /** Maximum elements of the body; `wire-scan.ts` describes how they are counted. */
  readonly elementsMax: number
  /** Maximum elements of any one field; absent: {@link FIELD_ELEMENTS_MAX}. */
  readonly fieldElementsMax?: number
}

const KIB = 1024
const MIB = 1024 * KIB

function bound(
  number: number,
  schema: DescMessage | null,
  bytesMax: number,
  elementsMax = 0,
): MessageBound {
  return { number, schema, bytesMax, elementsMax }
}

/**
 * Bounds of the messages that controllers and routers read, in either direction;
 * {@link UNLISTED_BODY_BYTES_MAX} applies to the others. OpenZiti routers send whole lists in one
 * message; the limits allow several thousand links, circuits and terminators, and several ten
 * thousand clients.
 */
export const messageBounds = {
  result: bound(channelContentType.result, null, 64 * KIB),
  circuitRequest: bound(
    controlContentType.circuitRequest,
    CreateFabricCircuitSchema,
    64 * KIB,
    1024,
  ),
  circuitSuccess: bound(controlContentType.circuitSuccess, null, 4 * KIB),
  fault: bound(controlContentType.fault, FaultSchema, MIB, 64),
  route: bound(controlContentType.route, RouteSchema, 64 * KIB, 1024),
  unroute: bound(controlContentType.unroute, UnrouteSchema, 4 * KIB, 16),
  metrics: {
    ...bound(controlContentType.metrics, MetricsSchema, 4 * MIB, 262_144),
    // High, because OpenZiti routers report the bytes of all circuits of one minute in a single
    // field.
    fieldElementsMax: 262_144,
  },
  removeTerminator: bound(controlContentType.removeTerminator, RemoveTerminatorSchema, 4 * KIB, 16),
  inspect: bound(controlContentType.inspect, InspectRequestSchema, 64 * KIB, 1024),
  inspectResponse: bound(controlContentType.inspectResponse, InspectAnswerSchema, 4 * MIB, 16_384),
  circuitFailed: bound(controlContentType.circuitFailed, null, 4 * KIB),
  updateTerminator: bound(controlContentType.updateTerminator, UpdateTerminatorSchema, 4 * KIB, 16),
  routeResult: bound(controlContentType.routeResult, null, 4 * KIB),
  circuitConfirmation: bound(
    controlContentType.circuitConfirmation,
    CircuitConfirmationSchema,
    2 * MIB,
    262_144,
  ),
  routerLinks: bound(controlContentType.routerLinks, RouterLinksSchema, 4 * MIB, 262_144),
  verifyRouter: bound(controlContentType.verifyRouter, VerifyRouterSchema, 16 * KIB, 64),
  updateCtrlAddresses: bound(
    controlContentType.updateCtrlAddresses,
    UpdateCtrlAddressesSchema,
    256 * KIB,
    8192,
  ),
  removeTerminators: bound(
    controlContentType.removeTerminators,
    RemoveTerminatorsSchema,
    512 * KIB,
    8192,
  ),
  validateTerminatorsV2: bound(
    controlContentType.validateTerminatorsV2,
    ValidateTerminatorsSchema,
    4 * MIB,
    131_072,
  ),
  validateTerminatorsV2Response: bound(
    controlContentType.validateTerminatorsV2Response,
    TerminatorStatesSchema,
    4 * MIB,
    131_072,
  ),
  peerStateChange: bound(
    controlContentType.peerStateChange,
    PeerStateChangesSchema,
    4 * MIB,
    131_072,
  ),
  updateClusterLeader: bound(
    controlContentType.updateClusterLeader,
    UpdateClusterLeaderSchema,
    4 * KIB,
    16,
  ),
  linkState: bound(controlContentType.linkState, LinkStateUpdateSchema, 64 * KIB, 1024),
  updateLinkListeners: bound(
    controlContentType.updateLinkListeners,
    LinkListenersSchema,
    64 * KIB,
    2048,
  ),
  updateRouterInterfaces: bound(
    controlContentType.updateRouterInterfaces,
    InterfacesSchema,
    256 * KIB,
    8192,
  ),
  alerts: bound(controlContentType.alerts, RouterAlertsSchema, 256 * KIB, 8192),
  clientHello: bound(controlContentType.clientHello, ClientHelloSchema, 64 * KIB, 1024),
  sessionRemoved: bound(controlContentType.sessionRemoved, SessionRemovedSchema, 4 * MIB, 65_536),
  apiSessionAdded: bound(
    controlContentType.apiSessionAdded,
    ApiSessionAddedSchema,
    4 * MIB,
    131_072,
  ),
  apiSessionRemoved: bound(
    controlContentType.apiSessionRemoved,
    ApiSessionRemovedSchema,
    4 * MIB,
    65_536,
  ),
  apiSessionHeartbeat: bound(
    controlContentType.apiSessionHeartbeat,
    ApiSessionHeartbeatSchema,
    4 * MIB,
    65_536,
  ),
  // @guard writes-of-a-router--older
  createCircuit: bound(controlContentType.createCircuit, CreateCircuitSchema, 64 * KIB, 1024),
  updateEdgeTerminator: bound(
    controlContentType.updateEdgeTerminator,
    UpdateEdgeTerminatorSchema,
    64 * KIB,
    256,
  ),
  validateSessions: bound(
    controlContentType.validateSessions,
    ValidateSessionsSchema,
    2 * MIB,
    8192,
  ),
  healthEvent: bound(controlContentType.healthEvent, HealthEventSchema, 64 * KIB, 256),
  createTerminatorV2: bound(
    controlContentType.createTerminatorV2,
    CreateTerminatorV2Schema,
    64 * KIB,
    1024,
  ),
  createTerminatorV2Response: bound(
    controlContentType.createTerminatorV2Response,
    CreateTerminatorV2AnswerSchema,
    16 * KIB,
    16,
  ),
  createCircuitV2: bound(controlContentType.createCircuitV2, null, 64 * KIB),
  createCircuitV3: bound(controlContentType.createCircuitV3, null, 64 * KIB),
  createTunnelCircuitV2: bound(
    controlContentType.createTunnelCircuitV2,
    CreateTunnelCircuitSchema,
    64 * KIB,
    1024,
  ),
  enrollmentExtendRouter: bound(
    controlContentType.enrollmentExtendRouter,
    ExtendRouterSchema,
    64 * KIB,
    16,
  ),
  enrollmentExtendRouterVerify: bound(
    controlContentType.enrollmentExtendRouterVerify,
    VerifyRouterCertificateSchema,
    64 * KIB,
    16,
  ),
  updateTunnelTerminator: bound(
    controlContentType.updateTunnelTerminator,
    UpdateTunnelTerminatorSchema,
    4 * KIB,
    16,
  ),
  removeTunnelTerminator: bound(controlContentType.removeTunnelTerminator, null, KIB),
  tunnelHealthEvent: bound(controlContentType.tunnelHealthEvent, null, KIB),
  createTunnelTerminatorV2: bound(
    controlContentType.createTunnelTerminatorV2,
    CreateTunnelTerminatorSchema,
    64 * KIB,
    1024,
  ),
  connectEvents: bound(controlContentType.connectEvents, ConnectEventsSchema, 8 * MIB, 524_288),
  dataState: {
    ...bound(controlContentType.dataState, DataStateSchema, 64 * MIB, 8_388_608),
    // High, because one change of a policy lists all members of the policy.
    fieldElementsMax: 1_048_576,
  },
  dataStateChangeSet: {
    ...bound(controlContentType.dataStateChangeSet, ModelChangeSetSchema, 16 * MIB, 2_097_152),
    fieldElementsMax: 1_048_576,
  },
  validateDataState: {
    ...bound(controlContentType.validateDataState, ValidateModelSchema, 64 * MIB, 8_388_608),
    fieldElementsMax: 8_388_608,
  },
  subscribeToDataModel: bound(
    controlContentType.subscribeToDataModel,
    SubscribeToDataModelSchema,
    4 * KIB,
    64,
  ),
  clientPosture: {
    ...bound(controlContentType.clientPosture, ClientPostureSchema, 96 * KIB, 16_384),
    fieldElementsMax: 16_384,
  },
  postureResponse: {
    ...bound(edgeContentType.postureResponse, PostureResponsesSchema, 64 * KIB, 8192),
    fieldElementsMax: 8192,
  },
  data: bound(edgeContentType.data, null, 4 * MIB),
  payload: bound(circuitContentType.payload, null, 4 * MIB),
} as const satisfies Readonly<Record<string, MessageBound>>

/**
 * Maximum body size of message types that are not in the table, such as some responses of
 * controllers; a longer body is skipped.
 */
export const UNLISTED_BODY_BYTES_MAX = 64 * KIB

const byNumber: ReadonlyMap<number, MessageBound> = new Map(
  Object.values(messageBounds).map((each) => [each.number, each]),
)

/** Maximum body length of messages of a content type. */
export function messageBodyBytesMax(contentType: number): number {
  return byNumber.get(contentType)?.bytesMax ?? UNLISTED_BODY_BYTES_MAX
}

/** Why the message is refused before it is decoded; null if it may be decoded. */
export function messageRefusalReason(message: ChannelMessage): string | null {
  const { contentType, body, leftOutBytes = 0 } = message
  const of = byNumber.get(contentType)
  if (of === undefined) return null
  if (leftOutBytes > 0) return `${leftOutBytes} bytes of body`
  if (of.schema === null) return null
  return protobufBodyFault(
    of.schema,
    body,
    of.elementsMax,
    of.fieldElementsMax ?? FIELD_ELEMENTS_MAX,
  )
}
