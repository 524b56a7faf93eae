import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import { FailedRequestSchema, FailedRequestsSchema } from '../../proto/gen/soft_pb.ts'
import { canonicalJson } from '../lib/text/canonical-json.ts'
import { toSafeInteger } from '../lib/text/safe-integer.ts'
import type { FailedRequest } from '../ports/posture.ts'
import { SOFT_VALUE_BYTES_MAX } from '../ports/soft-state.ts'
import type { OpenSoftTopic } from '../ports/soft-topics.ts'

export const failedRequestLimits = {
  /**
   * Maximum recorded requests of one identity at one controller; also the maximum in the list that
   * joins the records of all controllers.
   */
  failedRequestsMax: 100,
  /**
   * Minimum time between two recorded requests of one identity for the same service and session
   * type, because clients retry often.
   */
  failedRequestsApartMs: 10_000,
  /** Maximum recent requests that are stored in order to enforce `failedRequestsApartMs`. */
  failedRequestsRecentMax: 10_000,
} as const
const { failedRequestsMax } = failedRequestLimits
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Records, in soft state, service sessions that were refused because of posture. The latest records
 * of each identity are kept. When the topic has no room, this controller drops its records of the
 * identity that was refused least recently.
 */
export class FailedRequestLog {
  readonly #selfId: string
  readonly #topic: OpenSoftTopic<'failed-requests'>
  /** Identities with records from this controller; the most recently refused identity is last. */
  readonly #here = new Set<string>()
  /** Time of each recent record, by identity, service and session type; the most recent is last. */
  readonly #recentMs = new Map<string, number>()

  constructor(selfId: string, topic: OpenSoftTopic<'failed-requests'>) {
    this.#selfId = selfId
    this.#topic = topic
  }

  note(identityId: string, request: FailedRequest): void {
    if (this.#isRepeated(identityId, request)) return
    const known = this.#topic.get(this.#selfId, identityId)
    const requests = known === undefined ? [] : unpack(known)
    requests.push(request)
    let kept = requests.slice(-failedRequestsMax)
    let bytes = pack(kept)
    while (bytes.length > SOFT_VALUE_BYTES_MAX && kept.length > 1) {
      kept = kept.slice(Math.ceil(kept.length / 8))
      bytes = pack(kept)
    }
    if (bytes.length > SOFT_VALUE_BYTES_MAX) return
    this.#here.delete(identityId)
    while (!this.#topic.publish(identityId, bytes)) {
      const [oldest] = this.#here
      if (oldest === undefined) return
      this.#topic.withdraw(oldest)
      this.#here.delete(oldest)
    }
    this.#here.add(identityId)
  }

  #isRepeated(identityId: string, { serviceId, sessionType, atMs }: FailedRequest): boolean {
    const { failedRequestsApartMs, failedRequestsRecentMax } = failedRequestLimits
    const asked = `${identityId}\n${serviceId}\n${sessionType}`
    const before = this.#recentMs.get(asked)
    if (before !== undefined && Math.abs(atMs - before) < failedRequestsApartMs) return true
    this.#recentMs.delete(asked)
    this.#recentMs.set(asked, atMs)
    const [oldest] = this.#recentMs.keys()
    if (this.#recentMs.size > failedRequestsRecentMax && oldest !== undefined) {
      this.#recentMs.delete(oldest)
    }
    return false
  }

  of(identityId: string): readonly FailedRequest[] {
    const found: FailedRequest[] = []
    for (const { key, value } of this.#topic.values()) {
      if (key === identityId) found.push(...unpack(value))
    }
    return found.sort((a, b) => b.atMs - a.atMs).slice(0, failedRequestsMax)
  }
}

function pack(requests: readonly FailedRequest[]): Uint8Array {
  const message = create(FailedRequestsSchema, {
    requests: requests.map(({ atMs, policyFailures, ...rest }) =>
      create(FailedRequestSchema, {
        ...rest,
        atMs: BigInt(atMs),
        policyFailuresJson: new TextEncoder().encode(canonicalJson(policyFailures)),
      }),
    ),
  })
  return toBinary(FailedRequestsSchema, message)
}

/**
 * Decodes the records of one controller about one identity. The soft-state topic has checked the
 * format, but the values from other controllers are still untrusted.
 */
function unpack(bytes: Uint8Array): FailedRequest[] {
  return fromBinary(FailedRequestsSchema, bytes).requests.map(
    ({ atMs, apiSessionId, serviceId, serviceName, sessionType, policyFailuresJson }) => ({
      apiSessionId,
      serviceId,
      serviceName,
      sessionType,
      atMs: toSafeInteger(atMs),
      policyFailures: arrayOf(policyFailuresJson),
    }),
  )
}

function arrayOf(json: Uint8Array): FailedRequest['policyFailures'] {
  try {
    const value: unknown = JSON.parse(utf8.decode(json))
    return Array.isArray(value) ? (value as FailedRequest['policyFailures']) : []
  } catch {
    return []
  }
}
