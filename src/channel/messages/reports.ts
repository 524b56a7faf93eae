import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  InspectAnswerSchema,
  InspectRequestSchema,
  InterfacesSchema,
  MetricsSchema,
} from '../../../proto/gen/router_pb.ts'
import type { OutboundMessage } from '../frame.ts'
import { messageContentLimits } from './limits.ts'
import { controlContentType } from './control.ts'

/** @throws when the bytes are not a valid message. */
export function readInspectionRequest(body: Uint8Array): readonly string[] {
  return fromBinary(InspectRequestSchema, body).requestedValues
}

/** A router's response to an inspection. */
export interface InspectionResponse {
  readonly errors: readonly string[]
  readonly values: readonly { readonly name: string; readonly value: string }[]
}

export function inspectionResponseMessage({ errors, values }: InspectionResponse): OutboundMessage {
  const response = create(InspectAnswerSchema, {
    success: errors.length === 0,
    errors: [...errors],
    values: values.map(({ name, value }) => ({ name, value })),
  })
  return {
    contentType: controlContentType.inspectResponse,
    body: toBinary(InspectAnswerSchema, response),
  }
}

/** A network interface of a router's host. */
export interface HostInterface {
  readonly name: string
  readonly hardwareAddress: string
  readonly mtu: number
  readonly index: number
  /** Flag bits, see `interfaceFlag`. */
  readonly flags: number
  /** Addresses with their prefix length. */
  readonly addresses: readonly string[]
}

export function interfacesMessage(interfaces: readonly HostInterface[]): OutboundMessage {
  const update = create(InterfacesSchema, {
    interfaces: interfaces.map(({ name, hardwareAddress, mtu, index, flags, addresses }) => ({
      name,
      hardwareAddress,
      mtu: BigInt(mtu),
      index: BigInt(index),
      flags: BigInt(flags),
      addresses: [...addresses],
    })),
  })
  return {
    contentType: controlContentType.updateRouterInterfaces,
    body: toBinary(InterfacesSchema, update),
  }
}

/**
 * Network interfaces that a router reports.
 * @throws when the body cannot be decoded.
 */
export function readInterfaces(body: Uint8Array): HostInterface[] {
  return fromBinary(InterfacesSchema, body).interfaces.map(
    ({ name, hardwareAddress, mtu, index, flags, addresses }) => ({
      name,
      hardwareAddress,
      mtu: count(mtu),
      index: count(index),
      flags: Number(BigInt.asUintN(32, flags)),
      addresses,
    }),
  )
}

/** A count that another program reports; 0 if the value is not a valid count. */
function count(value: bigint): number {
  return value < 0n || value > BigInt(Number.MAX_SAFE_INTEGER) ? 0 : Number(value)
}

/**
 * Names of counters in the protocol. `rx` counts bytes that this router read, `tx` bytes that it
 * wrote.
 */
export type UsageCounterKind = `${'fabric' | 'ingress' | 'egress'}.${'rx' | 'tx'}`

/** Bytes that one circuit has carried since the last report. */
export interface CircuitByteCounts {
  readonly circuitId: string
  readonly tags: Readonly<Record<string, string>>
  /** Counters with the value 0 are absent. */
  readonly bytes: Readonly<Partial<Record<UsageCounterKind, number>>>
}

/** Bytes carried by circuits in one interval; times in seconds. */
export interface UsageReport {
  /** UTC, s. */
  readonly startS: number
  readonly lengthS: number
  readonly circuits: readonly CircuitByteCounts[]
}

/** A metrics message that contains only the usage report of one interval. */
export function usageMessage(
  routerId: string,
  { startS, lengthS, circuits }: UsageReport,
  { eventId, atMs }: { readonly eventId: string; readonly atMs: number },
): OutboundMessage {
  const interval = { intervalStartUtc: BigInt(startS), intervalLength: BigInt(lengthS) }
  const { usageCircuitsPerCounterMax } = messageContentLimits
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
  return { contentType: controlContentType.metrics, body: toBinary(MetricsSchema, metrics) }
}

function timestampOf(atMs: number): { seconds: bigint; nanos: number } {
  return { seconds: BigInt(Math.floor(atMs / 1000)), nanos: Math.floor(atMs % 1000) * 1_000_000 }
}

/** Metrics of one interval by name. */
export interface MetricsBatch {
  readonly eventId: string
  /** End of the interval, UTC ms. */
  readonly atMs: number
  readonly integers: Readonly<Record<string, number>>
  readonly numbers: Readonly<Record<string, number>>
  /** Latencies by name of the histogram; each histogram contains one sample. */
  readonly latenciesNs: Readonly<Record<string, number>>
}

/**
 * @param isPropagated the router sets this to true for one controller only, because every
 * controller that receives true counts the values.
 */
export function metricsMessage(
  routerId: string,
  { eventId, atMs, integers, numbers, latenciesNs }: MetricsBatch,
  isPropagated: boolean,
): OutboundMessage {
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
  return { contentType: controlContentType.metrics, body: toBinary(MetricsSchema, metrics) }
}
