import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  ClientHelloSchema,
  InspectAnswerSchema,
  InspectRequestSchema,
  InterfacesSchema,
  MetricsSchema,
  UpdateClusterLeaderSchema,
  UpdateCtrlAddressesSchema,
} from '../../../proto/gen/router_pb.ts'
import { CONNECT_BY_SERVICE, MULTI_CHANNEL } from '../../lib/router-capabilities.ts'
import type { Outgoing } from '../../channel/channel.ts'
import { versionLine, type VersionLine } from '../../channel/hello.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { flagValue, maskValue, textValue, uint64Value } from '../../channel/headers.ts'
import { contentType, HELLO_SEQUENCE, headerKey } from '../../channel/numbers.ts'
import { formatHostPort, isControllerId } from '../../lib/text/names.ts'
import type { UsageReport } from '../forward/circuit-usages.ts'
import { forwardLimits } from '../forward/limits.ts'
import { type ControllerKey, isControllerAddress } from './endpoints-file.ts'
import type { ReportedMembers, ReportedController } from './membership.ts'

/** Content types between a router and its controllers. */
export const controlMessage = {
  ping: 1,
  metrics: 1007,
  inspect: 1013,
  inspected: 1014,
  routerLinks: 1035,
  updateCtrlAddresses: 1037,
  quiesce: 1039,
  dequiesce: 1040,
  decommission: 1043,
  updateClusterLeader: 1051,
  interfaces: 1052,
  requestClusterMembers: 1055,
  serverHello: 20_000,
  clientHello: 20_001,
} as const

/** The application protocol of control channels. */
export const CONTROL_PROTOCOL = 'ziti-ctrl'
const CONTROL_TYPE = 'ctrl.default'
const LINK_LISTENERS_HEADER = 1000
const CAPABILITIES_HEADER = 1002
const DATA_MODEL_HEADER = 1024
const DATA_MODEL_INDEX_HEADER = 1025
const SHA256_BYTES = 32

/** @param routerId the common name of the router's certificate. */
export function routerHello(
  routerId: string,
  version: VersionLine,
  linkListeners: Uint8Array | null,
): ChannelMessage {
  return {
    contentType: contentType.hello,
    sequence: HELLO_SEQUENCE,
    headers: new Map([
      [headerKey.helloVersion, textValue(versionLine(version))],
      [headerKey.type, textValue(CONTROL_TYPE)],
      [headerKey.isGrouped, flagValue(true)],
      [headerKey.isFirstGroupConnection, flagValue(true)],
      [CAPABILITIES_HEADER, maskValue([MULTI_CHANNEL, CONNECT_BY_SERVICE])],
      ...(linkListeners === null ? [] : [[LINK_LISTENERS_HEADER, linkListeners] as const]),
    ]),
    body: textValue(routerId),
  }
}

export interface AddressesUpdate extends Omit<ReportedMembers, 'senderId'> {
  /** Some members are left out for a moment, and the whole list follows. */
  readonly isInterim: boolean
}

/**
 * Addresses and ids that cannot be one are left out.
 * @throws when the bytes are no such message.
 */
export function readAddresses(body: Uint8Array): AddressesUpdate {
  const update = fromBinary(UpdateCtrlAddressesSchema, body)
  const { index, isLeader, isInterim } = update
  const controllers = update.controllers.flatMap((each): ReportedController[] => {
    const addresses = each.endpoints.map(({ address }) => address).filter(isControllerAddress)
    const { id } = each
    const keySha256 = keyText(each.publicKeySha256)
    return isControllerId(id) && addresses.length > 0 ? [{ id, addresses, keySha256 }] : []
  })
  const removed = update.removed.flatMap(({ id, publicKeySha256 }): ControllerKey[] => {
    const keySha256 = keyText(publicKeySha256)
    return isControllerId(id) && keySha256 !== null ? [{ id, keySha256 }] : []
  })
  return { index, isLeader, isInterim, controllers, removed }
}

/** @throws when the bytes are no such message. */
export function readLeaderIndex(body: Uint8Array): bigint {
  return fromBinary(UpdateClusterLeaderSchema, body).index
}

function keyText(sha256: Uint8Array): string | null {
  return sha256.length === SHA256_BYTES ? Buffer.from(sha256).toString('hex') : null
}

/** @throws when the bytes are no such message. */
export function readInspection(body: Uint8Array): readonly string[] {
  return fromBinary(InspectRequestSchema, body).requestedValues
}

export interface Inspected {
  readonly errors: readonly string[]
  readonly values: readonly { readonly name: string; readonly value: string }[]
}

export function inspectedMessage({ errors, values }: Inspected): Outgoing {
  const response = create(InspectAnswerSchema, {
    success: errors.length === 0,
    errors: [...errors],
    values: values.map(({ name, value }) => ({ name, value })),
  })
  return {
    contentType: controlMessage.inspected,
    body: toBinary(InspectAnswerSchema, response),
  }
}

/** An address that clients connect to, by a protocol. */
export interface ClientAddress {
  readonly protocol: string
  readonly host: string
  readonly port: number
}

/** The answer to the hello of a controller. @param addresses that clients can connect to. */
export function clientHello(
  version: string,
  hostname: string,
  addresses: readonly ClientAddress[],
): Outgoing {
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
    contentType: controlMessage.clientHello,
    headers: new Map([
      [DATA_MODEL_HEADER, flagValue(true)],
      [DATA_MODEL_INDEX_HEADER, uint64Value(0n)],
    ]),
    body: toBinary(ClientHelloSchema, hello),
  }
}

export interface HostInterface {
  readonly name: string
  readonly hardwareAddress: string
  /** Addresses with their prefix length. */
  readonly addresses: readonly string[]
  readonly isLoopback: boolean
}

const FLAG_UP = 1n
const FLAG_LOOPBACK = 4n

export function interfacesMessage(interfaces: readonly HostInterface[]): Outgoing {
  const update = create(InterfacesSchema, {
    interfaces: interfaces.map(({ name, hardwareAddress, addresses, isLoopback }) => ({
      name,
      hardwareAddress,
      flags: FLAG_UP | (isLoopback ? FLAG_LOOPBACK : 0n),
      addresses: [...addresses],
    })),
  })
  return { contentType: controlMessage.interfaces, body: toBinary(InterfacesSchema, update) }
}

/** Bytes of circuits in one interval, as metrics of their own. */
export function usageMessage(
  routerId: string,
  { startS, lengthS, circuits }: UsageReport,
  { eventId, atMs }: { readonly eventId: string; readonly atMs: number },
): Outgoing {
  const interval = { intervalStartUtc: BigInt(startS), intervalLength: BigInt(lengthS) }
  const { usageCircuitsPerCounterMax } = forwardLimits
  const usageCounters = []
  for (let at = 0; at < circuits.length; at += usageCircuitsPerCounterMax) {
    const buckets = circuits
      .slice(at, at + usageCircuitsPerCounterMax)
      .map(({ circuitId, bytes, tags }) => {
        const values = Object.entries(bytes).map(([kind, count]) => [kind, BigInt(count)] as const)
        return [circuitId, { values: Object.fromEntries(values), tags: { ...tags } }] as const
      })
    usageCounters.push({ ...interval, buckets: Object.fromEntries(buckets) })
  }
  const timestamp = timestampOf(atMs)
  const metrics = create(MetricsSchema, { eventId, sourceId: routerId, timestamp, usageCounters })
  return { contentType: controlMessage.metrics, body: toBinary(MetricsSchema, metrics) }
}

function timestampOf(atMs: number): { seconds: bigint; nanos: number } {
  return { seconds: BigInt(Math.floor(atMs / 1000)), nanos: Math.floor(atMs % 1000) * 1_000_000 }
}

export interface MetricsBatch {
  readonly eventId: string
  /** UTC ms: the end of what it covers. */
  readonly atMs: number
  readonly integers: Readonly<Record<string, number>>
  readonly numbers: Readonly<Record<string, number>>
  /** Latencies by the name of the histogram; one sample each. */
  readonly latenciesNs: Readonly<Record<string, number>>
}

/** @param isPropagated false for all controllers but one, or each of them would count the same. */
export function metricsMessage(
  routerId: string,
  { eventId, atMs, integers, numbers, latenciesNs }: MetricsBatch,
  isPropagated: boolean,
): Outgoing {
  const metrics = create(MetricsSchema, {
    eventId,
    sourceId: routerId,
    timestamp: timestampOf(atMs),
    intValues: Object.fromEntries(
      Object.entries(integers).map(([name, figure]) => [name, BigInt(Math.round(figure))]),
    ),
    floatValues: { ...numbers },
    histograms: Object.fromEntries(
      Object.entries(latenciesNs).map(([name, ns]) => {
        const whole = BigInt(Math.round(ns))
        return [name, { count: 1n, max: whole, mean: ns, min: whole }]
      }),
    ),
    doNotPropagate: !isPropagated,
  })
  return { contentType: controlMessage.metrics, body: toBinary(MetricsSchema, metrics) }
}
