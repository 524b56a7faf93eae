import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  ClientHelloSchema,
  ServerHelloSchema,
  UpdateClusterLeaderSchema,
  UpdateCtrlAddressesSchema,
} from '../../../proto/gen/router_pb.ts'
import type { Outgoing } from '../frame.ts'
import { flagValue } from '../headers.ts'

/** Header of a hello: the mask of what the router can do. */
export const routerCapabilitiesHeader = 1002

/** Content types between controller and router. */
export const routerMessage = {
  ping: 1,
  result: 2,
  fabricCircuit: 1000,
  fabricCircuitCreated: 1001,
  fabricCircuitFailed: 1016,
  fault: 1004,
  route: 1005,
  unroute: 1006,
  metrics: 1007,
  traceEvent: 1010,
  removeTerminator: 1012,
  inspectRequest: 1013,
  inspectAnswer: 1014,
  updateTerminator: 1018,
  routeResult: 1022,
  circuitConfirmation: 1034,
  routerLinks: 1035,
  verifyRouter: 1036,
  updateCtrlAddresses: 1037,
  removeTerminators: 1038,
  quiesce: 1039,
  dequiesce: 1040,
  validateTerminators: 1041,
  terminatorStates: 1042,
  decommission: 1043,
  peerStateChanges: 1050,
  updateClusterLeader: 1051,
  interfacesUpdate: 1052,
  linkStateUpdate: 1053,
  alerts: 1054,
  requestClusterMembers: 1055,
  linkListeners: 1056,
  serverHello: 20_000,
  clientHello: 20_001,
  error: 20_002,
  sessionRemoved: 20_102,
  apiSessionAdded: 20_200,
  apiSessionRemoved: 20_202,
  apiSessionHeartbeat: 20_203,
  requestSessions: 20_204,
  createCircuitOld: 20_205,
  createCircuitOldAnswer: 20_206,
  updateEdgeTerminator: 20_209,
  validateSessions: 20_213,
  healthEvent: 20_214,
  createTerminator: 20_216,
  createTerminatorAnswer: 20_217,
  createCircuit: 20_218,
  createCircuitAnswer: 20_219,
  createTunnelCircuit: 20_220,
  createTunnelCircuitAnswer: 20_221,
  createCircuitByName: 20_222,
  createCircuitByNameAnswer: 20_223,
  certificates: 20_301,
  extendRouter: 20_302,
  verifyCertificate: 20_303,
  updateTunnelTerminator: 20_408,
  updateTunnelTerminatorAnswer: 20_409,
  removeTunnelTerminator: 20_410,
  removeTunnelTerminatorAnswer: 20_411,
  tunnelHealthEvent: 20_412,
  createTunnelTerminator: 20_413,
  createTunnelTerminatorAnswer: 20_414,
  connectEvents: 20_415,
  dataState: 20_500,
  modelChanges: 20_501,
  modelValidation: 20_504,
  subscribeToModel: 20_505,
  modelIndex: 20_506,
  /** This product's own. */
  clientPosture: 29_000,
} as const

const ROUTER_DATA_MODEL_HEADER = 1024

export interface ControllerAddress {
  readonly id: string
  /** `tls:host:port`. */
  readonly address: string
  /** SHA-256 of the key that is pinned for it. */
  readonly publicKeySha256: Uint8Array
}

/** A key that a member had before it was removed. */
export type RemovedController = Pick<ControllerAddress, 'id' | 'publicKeySha256'>

/** The controllers of the cluster, as a router is told of them. */
export interface ClusterAddresses {
  readonly controllers: readonly ControllerAddress[]
  readonly removed: readonly RemovedController[]
  /**
   * A router takes a list only with a greater one than it knows. Of the configuration of members;
   * from the leader, how far the log is, since an address can change without a change of members.
   */
  readonly index: number
  /** Index of the configuration of members. */
  readonly configurationIndex: number
  readonly isLeader: boolean
}

/**
 * @param isInterim some members are left out for a moment; routers of this product pass over such
 * a list.
 */
export function addressesMessage(
  { controllers, removed, index, isLeader }: ClusterAddresses,
  isInterim = false,
): Outgoing {
  const update = create(UpdateCtrlAddressesSchema, {
    // Older routers read these, newer ones those by id.
    addresses: controllers.map(({ address }) => address),
    controllers: controllers.map(({ id, address, publicKeySha256 }) => ({
      id,
      endpoints: [{ address }],
      publicKeySha256,
    })),
    removed: removed.map(({ id, publicKeySha256 }) => ({ id, publicKeySha256 })),
    index: BigInt(index),
    isLeader,
    isInterim,
  })
  return {
    contentType: routerMessage.updateCtrlAddresses,
    body: toBinary(UpdateCtrlAddressesSchema, update),
  }
}

/**
 * @param index grows from leader to leader; a router takes none that is lower than the last one.
 */
export function leaderMessage(index: number): Outgoing {
  const update = create(UpdateClusterLeaderSchema, { index: BigInt(index) })
  return {
    contentType: routerMessage.updateClusterLeader,
    body: toBinary(UpdateClusterLeaderSchema, update),
  }
}

export function serverHello(version: string): Outgoing {
  const hello = create(ServerHelloSchema, {
    version,
    data: { instant: 'true', routerModel: 'true' },
  })
  return {
    contentType: routerMessage.serverHello,
    headers: new Map([[ROUTER_DATA_MODEL_HEADER, flagValue(true)]]),
    body: toBinary(ServerHelloSchema, hello),
  }
}

/** What an edge router answers to the hello of a controller. */
export interface ClientHello {
  readonly hostname: string
  /** `protocol://host:port` of each protocol by which clients reach the router. */
  readonly protocols: Readonly<Record<string, string>>
}

/** @throws when the bytes are no hello of an edge router. */
export function readClientHello(body: Uint8Array): ClientHello {
  const { hostname, listeners } = fromBinary(ClientHelloSchema, body)
  const protocols = listeners.flatMap(({ advertise }) =>
    advertise === undefined || advertise.protocol === ''
      ? []
      : [[advertise.protocol, urlOf(advertise)] as const],
  )
  return { hostname, protocols: Object.fromEntries(protocols) }
}

function urlOf(address: {
  readonly protocol: string
  readonly hostname: string
  readonly port: number
}): string {
  const { protocol, hostname, port } = address
  const host = hostname.includes(':') ? `[${hostname}]` : hostname
  return `${protocol}://${host}:${port}`
}
