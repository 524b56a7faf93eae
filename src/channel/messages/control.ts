import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  ClientHelloSchema,
  ServerHelloSchema,
  UpdateClusterLeaderSchema,
  UpdateCtrlAddressesSchema,
} from '../../../proto/gen/router_pb.ts'
import type { ChannelMessage, OutboundMessage } from '../frame.ts'
import { encodeFlag, encodeBitMask, encodeText, encodeUint64 } from '../headers.ts'
import { formatVersionLine, type VersionLine } from '../hello.ts'
import { channelContentType, HELLO_SEQUENCE, channelHeaderKey } from '../numbers.ts'
import {
  CONNECT_BY_SERVICE,
  MULTI_CHANNEL,
  RENEWS_WITH_A_THIRD_LEFT,
} from '../../lib/router-capabilities.ts'
import { formatHostPort } from '../../lib/text/names.ts'

/**
 * Content types between controllers and routers. The names are OpenZiti's without `Type` and, for
 * requests, without `Request` at the end, with three exceptions: `circuitRequest`,
 * `updateEdgeTerminator`, because OpenZiti has two types named UpdateTerminator, and
 * `clientPosture`, which only Flotilla has.
 */
export const controlContentType = {
  // Numbers from ctrl_pb.ContentType, and from ctrl_msg for the responses to circuit requests and
  // routes.
  circuitRequest: 1000,
  circuitSuccess: 1001,
  fault: 1004,
  route: 1005,
  unroute: 1006,
  metrics: 1007,
  traceEvent: 1010,
  removeTerminator: 1012,
  inspect: 1013,
  inspectResponse: 1014,
  circuitFailed: 1016,
  updateTerminator: 1018,
  routeResult: 1022,
  circuitConfirmation: 1034,
  routerLinks: 1035,
  verifyRouter: 1036,
  updateCtrlAddresses: 1037,
  removeTerminators: 1038,
  quiesceRouter: 1039,
  dequiesceRouter: 1040,
  validateTerminatorsV2: 1041,
  validateTerminatorsV2Response: 1042,
  decommissionRouter: 1043,
  peerStateChange: 1050,
  updateClusterLeader: 1051,
  updateRouterInterfaces: 1052,
  linkState: 1053,
  alerts: 1054,
  requestClusterMembers: 1055,
  updateLinkListeners: 1056,

  // edge_ctrl_pb.ContentType
  serverHello: 20_000,
  clientHello: 20_001,
  error: 20_002,
  sessionRemoved: 20_102,
  apiSessionAdded: 20_200,
  apiSessionRemoved: 20_202,
  apiSessionHeartbeat: 20_203,
  requestClientReSync: 20_204,
  createCircuit: 20_205,
  createCircuitResponse: 20_206,
  updateEdgeTerminator: 20_209,
  validateSessions: 20_213,
  healthEvent: 20_214,
  createTerminatorV2: 20_216,
  createTerminatorV2Response: 20_217,
  createCircuitV2: 20_218,
  createCircuitV2Response: 20_219,
  createTunnelCircuitV2: 20_220,
  createTunnelCircuitV2Response: 20_221,
  createCircuitV3: 20_222,
  createCircuitV3Response: 20_223,
  enrollmentCertsResponse: 20_301,
  enrollmentExtendRouter: 20_302,
  enrollmentExtendRouterVerify: 20_303,
  createApiSession: 20_400,
  createCircuitForService: 20_402,
  listServices: 20_404,
  createTunnelTerminator: 20_406,
  updateTunnelTerminator: 20_408,
  updateTunnelTerminatorResponse: 20_409,
  removeTunnelTerminator: 20_410,
  removeTunnelTerminatorResponse: 20_411,
  tunnelHealthEvent: 20_412,
  createTunnelTerminatorV2: 20_413,
  createTunnelTerminatorV2Response: 20_414,
  connectEvents: 20_415,
  dataState: 20_500,
  dataStateChangeSet: 20_501,
  validateDataState: 20_503,
  validateDataStateResponse: 20_504,
  subscribeToDataModel: 20_505,
  currentIndex: 20_506,

  // Forwards a client's posture reports; only Flotilla routers send this message.
  clientPosture: 29_000,
} as const

/**
 * Headers between controllers and routers: ControlHeaders of OpenZiti's ctrl_pb, Header of
 * edge_ctrl_pb.
 */
export const controlHeaderKey = {
  listeners: 1000,
  capabilities: 1002,
  syncStrategyType: 1013,
  syncStrategyState: 1014,
  terminatorId: 1022,
  checkPassed: 1023,
  routerDataModel: 1024,
  routerDataModelIndex: 1025,
  routerDataModelSubscriptionId: 1026,
  clusterId: 2004,
} as const

/** Keys that routers and controllers before 2.0 use for these hello headers. */
export const legacyHelloHeaderKey = { listeners: 10, capabilities: 12, clusterId: 15 } as const

/** The application protocol of control channels. */
export const CONTROL_PROTOCOL = 'ziti-ctrl'
const CONTROL_TYPE = 'ctrl.default'

/** @param routerId the common name of the router's certificate. */
export function routerHelloMessage(
  routerId: string,
  version: VersionLine,
  linkListeners: Uint8Array | null,
): ChannelMessage {
  return {
    contentType: channelContentType.hello,
    sequence: HELLO_SEQUENCE,
    headers: new Map([
      [channelHeaderKey.helloVersion, encodeText(formatVersionLine(version))],
      [channelHeaderKey.type, encodeText(CONTROL_TYPE)],
      [channelHeaderKey.isGrouped, encodeFlag(true)],
      [channelHeaderKey.isFirstGroupConnection, encodeFlag(true)],
      [
        controlHeaderKey.capabilities,
        encodeBitMask([MULTI_CHANNEL, CONNECT_BY_SERVICE, RENEWS_WITH_A_THIRD_LEFT]),
      ],
      ...(linkListeners === null ? [] : [[controlHeaderKey.listeners, linkListeners] as const]),
    ]),
    body: encodeText(routerId),
  }
}

/** Addresses of a controller, and the hash of the key that its certificate must have. */
export interface ControllerAddress {
  readonly id: string
  /** `tls:host:port`, at least one, in the order in which routers try them. */
  readonly addresses: readonly string[]
  /**
   * Origins of the controller's client API, `https://host:port`, where routers renew their
   * certificates.
   */
  readonly clientApis: readonly string[]
  /** SHA-256 of the public key that the controller's certificate must have. */
  readonly publicKeySha256: Uint8Array
}

/** ID of a controller that was removed from the cluster, and a key that it had as a member. */
export type RemovedController = Pick<ControllerAddress, 'id' | 'publicKeySha256'>

/** The controllers of the cluster, as sent to a router. */
export interface ClusterAddresses {
  readonly controllers: readonly ControllerAddress[]
  readonly removed: readonly RemovedController[]
  /**
   * A router accepts a list only if this index is greater than the index of its current list.
   * Followers send the index of the membership configuration. The leader sends its commit index if
   * that is greater, because an address can change without a change of members.
   */
  readonly index: number
  /** Index of the membership configuration. */
  readonly configurationIndex: number
  readonly isLeader: boolean
}

/**
 * @param isInterim true if some members are temporarily missing from the list; Flotilla routers
 * ignore a list with this mark.
 */
export function addressesMessage(
  { controllers, removed, index, isLeader }: ClusterAddresses,
  isInterim = false,
): OutboundMessage {
  const update = create(UpdateCtrlAddressesSchema, {
    // Older routers, which cannot read a list with IDs, read this field.
    addresses: controllers.flatMap((controller) => controller.addresses),
    controllers: controllers.map(({ id, addresses, publicKeySha256, clientApis }) => ({
      id,
      endpoints: addresses.map((address) => ({ address })),
      publicKeySha256,
      clientApis: [...clientApis],
    })),
    removed: removed.map(({ id, publicKeySha256 }) => ({ id, publicKeySha256 })),
    index: BigInt(index),
    isLeader,
    isInterim,
  })
  return {
    contentType: controlContentType.updateCtrlAddresses,
    body: toBinary(UpdateCtrlAddressesSchema, update),
  }
}

/**
 * @param index grows with each new leader; a router ignores a message with a smaller index than the
 * last one.
 */
export function leaderMessage(index: number): OutboundMessage {
  const update = create(UpdateClusterLeaderSchema, { index: BigInt(index) })
  return {
    contentType: controlContentType.updateClusterLeader,
    body: toBinary(UpdateClusterLeaderSchema, update),
  }
}

/** @throws when the bytes are not a valid message. */
export function readLeaderIndex(body: Uint8Array): bigint {
  return fromBinary(UpdateClusterLeaderSchema, body).index
}

export function controllerHelloMessage(version: string): OutboundMessage {
  const hello = create(ServerHelloSchema, {
    version,
    data: { instant: 'true', routerModel: 'true' },
  })
  return {
    contentType: controlContentType.serverHello,
    headers: new Map([[controlHeaderKey.routerDataModel, encodeFlag(true)]]),
    body: toBinary(ServerHelloSchema, hello),
  }
}

/** A protocol and address for clients. */
export interface ClientAddress {
  readonly protocol: string
  readonly host: string
  readonly port: number
}

/**
 * The reply of an edge router to a controller's hello.
 * @param addresses where clients can connect.
 */
export function edgeRouterHelloMessage(
  version: string,
  hostname: string,
  addresses: readonly ClientAddress[],
): OutboundMessage {
  const hello = create(ClientHelloSchema, {
    version,
    hostname,
    protocols: addresses.map(({ protocol }) => protocol),
    listeners: addresses.map(({ protocol, host, port }) => {
      const value = `${protocol}:${formatHostPort({ host, port })}`
      const advertise = { value, protocol, hostname: host, port }
      return { address: advertise, advertise }
    }),
  })
  return {
    contentType: controlContentType.clientHello,
    headers: new Map([
      [controlHeaderKey.routerDataModel, encodeFlag(true)],
      [controlHeaderKey.routerDataModelIndex, encodeUint64(0n)],
    ]),
    body: toBinary(ClientHelloSchema, hello),
  }
}

/** Reply of an edge router to a controller's hello. */
export interface EdgeRouterHello {
  readonly hostname: string
  /** `protocol://host:port` for each client protocol of the router. */
  readonly protocols: Readonly<Record<string, string>>
}

/** @throws when the bytes are not a hello of an edge router. */
export function readEdgeRouterHello(body: Uint8Array): EdgeRouterHello {
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
