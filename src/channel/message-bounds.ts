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
  LinkListenersSchema,
  LinkStateUpdateSchema,
  MetricsSchema,
  ModelChangeSetSchema,
  PeerStateChangesSchema,
  PostureResponsesSchema,
  RemoveTerminatorSchema,
  RemoveTerminatorsSchema,
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
import { bodyFault, FIELD_UNITS_MAX } from './wire-scan.ts'

/** Bound of the body of one message, judged before it is decoded. */
export interface MessageBound {
  readonly number: number
  /** Null: it is no protobuf, or nobody here decodes it. */
  readonly schema: DescMessage | null
  /** A longer body is not even kept while it comes in. */
  readonly bytesMax: number
  /** Tags and lengths; a message within it counts four more, and all of its members at least. */
  readonly elementsMax: number
  /** The same for each of its fields with its contents; absent: {@link FIELD_UNITS_MAX}. */
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
 * Every message that a controller or a router reads, in whichever direction. Routers of the family
 * send whole lists in one message, so these have room for some thousand links, circuits and
 * terminators, and for some ten thousand clients.
 */
export const messageBounds = {
  result: bound(2, null, 64 * KIB),
  fabricCircuit: bound(1000, CreateFabricCircuitSchema, 64 * KIB, 1024),
  fabricCircuitCreated: bound(1001, null, 4 * KIB),
  fault: bound(1004, FaultSchema, MIB, 64),
  route: bound(1005, RouteSchema, 64 * KIB, 1024),
  unroute: bound(1006, UnrouteSchema, 4 * KIB, 16),
  metrics: {
    ...bound(1007, MetricsSchema, 4 * MIB, 262_144),
    // Routers of the family tell the bytes of all circuits of a minute in one field.
    fieldElementsMax: 262_144,
  },
  removeTerminator: bound(1012, RemoveTerminatorSchema, 4 * KIB, 16),
  inspect: bound(1013, InspectRequestSchema, 64 * KIB, 1024),
  inspected: bound(1014, InspectAnswerSchema, 4 * MIB, 16_384),
  fabricCircuitFailed: bound(1016, null, 4 * KIB),
  updateTerminator: bound(1018, UpdateTerminatorSchema, 4 * KIB, 16),
  routeResult: bound(1022, null, 4 * KIB),
  circuitConfirmation: bound(1034, CircuitConfirmationSchema, 2 * MIB, 262_144),
  routerLinks: bound(1035, RouterLinksSchema, 4 * MIB, 262_144),
  verifyRouter: bound(1036, VerifyRouterSchema, 16 * KIB, 64),
  updateCtrlAddresses: bound(1037, UpdateCtrlAddressesSchema, 256 * KIB, 8192),
  removeTerminators: bound(1038, RemoveTerminatorsSchema, 512 * KIB, 8192),
  validateTerminators: bound(1041, ValidateTerminatorsSchema, 4 * MIB, 131_072),
  terminatorStates: bound(1042, TerminatorStatesSchema, 4 * MIB, 131_072),
  peerStateChanges: bound(1050, PeerStateChangesSchema, 4 * MIB, 131_072),
  updateClusterLeader: bound(1051, UpdateClusterLeaderSchema, 4 * KIB, 16),
  linkStateUpdate: bound(1053, LinkStateUpdateSchema, 64 * KIB, 1024),
  linkListeners: bound(1056, LinkListenersSchema, 64 * KIB, 2048),
  clientHello: bound(20_001, ClientHelloSchema, 64 * KIB, 1024),
  sessionRemoved: bound(20_102, SessionRemovedSchema, 4 * MIB, 65_536),
  apiSessionAdded: bound(20_200, ApiSessionAddedSchema, 4 * MIB, 131_072),
  apiSessionRemoved: bound(20_202, ApiSessionRemovedSchema, 4 * MIB, 65_536),
  apiSessionHeartbeat: bound(20_203, ApiSessionHeartbeatSchema, 4 * MIB, 65_536),
  // @guard writes-of-a-router--older
  createCircuitOld: bound(20_205, CreateCircuitSchema, 64 * KIB, 1024),
  updateEdgeTerminator: bound(20_209, UpdateEdgeTerminatorSchema, 64 * KIB, 256),
  validateSessions: bound(20_213, ValidateSessionsSchema, 2 * MIB, 8192),
  healthEvent: bound(20_214, HealthEventSchema, 64 * KIB, 256),
  createTerminator: bound(20_216, CreateTerminatorV2Schema, 64 * KIB, 1024),
  createTerminatorAnswer: bound(20_217, CreateTerminatorV2AnswerSchema, 16 * KIB, 16),
  createCircuit: bound(20_218, null, 64 * KIB),
  createCircuitByName: bound(20_222, null, 64 * KIB),
  createTunnelCircuit: bound(20_220, CreateTunnelCircuitSchema, 64 * KIB, 1024),
  extendRouter: bound(20_302, ExtendRouterSchema, 64 * KIB, 16),
  verifyCertificate: bound(20_303, VerifyRouterCertificateSchema, 64 * KIB, 16),
  updateTunnelTerminator: bound(20_408, UpdateTunnelTerminatorSchema, 4 * KIB, 16),
  removeTunnelTerminator: bound(20_410, null, KIB),
  tunnelHealthEvent: bound(20_412, null, KIB),
  createTunnelTerminator: bound(20_413, CreateTunnelTerminatorSchema, 64 * KIB, 1024),
  connectEvents: bound(20_415, ConnectEventsSchema, 8 * MIB, 524_288),
  dataState: {
    ...bound(20_500, DataStateSchema, 64 * MIB, 8_388_608),
    // One change of a policy names all that it means.
    fieldElementsMax: 1_048_576,
  },
  modelChanges: {
    ...bound(20_501, ModelChangeSetSchema, 16 * MIB, 2_097_152),
    fieldElementsMax: 1_048_576,
  },
  validateModel: {
    ...bound(20_503, ValidateModelSchema, 64 * MIB, 8_388_608),
    fieldElementsMax: 8_388_608,
  },
  subscribeToModel: bound(20_505, SubscribeToDataModelSchema, 4 * KIB, 64),
  clientPosture: {
    ...bound(29_000, ClientPostureSchema, 96 * KIB, 16_384),
    fieldElementsMax: 16_384,
  },
  devicePosture: {
    ...bound(10_800, PostureResponsesSchema, 64 * KIB, 8192),
    fieldElementsMax: 8192,
  },
  edgeData: bound(60_786, null, 4 * MIB),
  circuitPayload: bound(1100, null, 4 * MIB),
} as const satisfies Readonly<Record<string, MessageBound>>

/** Bound of a message that is not in the table: nobody reads it; a longer body is skipped. */
export const OTHER_BODY_BYTES_MAX = 64 * KIB

const byNumber: ReadonlyMap<number, MessageBound> = new Map(
  Object.values(messageBounds).map((each) => [each.number, each]),
)

export function bodyBytesMaxOf(contentType: number): number {
  return byNumber.get(contentType)?.bytesMax ?? OTHER_BODY_BYTES_MAX
}

/** Why the message is refused before it is decoded; null: nothing speaks against it. */
export function messageFault(message: ChannelMessage): string | null {
  const { contentType, body, leftOutBytes = 0 } = message
  const of = byNumber.get(contentType)
  if (of === undefined) return null
  if (leftOutBytes > 0) return `${leftOutBytes} bytes of body`
  if (of.schema === null) return null
  return bodyFault(of.schema, body, of.elementsMax, of.fieldElementsMax ?? FIELD_UNITS_MAX)
}
