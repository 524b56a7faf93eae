import { create } from '@bufbuild/protobuf'

import {
  type IdentityTrace as SharedTrace,
  IdentityTraceSchema,
} from '../../../proto/gen/soft_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import { type IdentityTrace, type IdentityTraces, traceMsMax } from '../../ports/identity-traces.ts'
import type { OpenSoftTopic } from '../../ports/soft-topics.ts'

export const traceLimits = {
  /** Maximum identities that one controller can trace at the same time. */
  tracesMax: 1000,
} as const

interface TracedIdentitiesDeps {
  readonly selfId: string
  readonly topic: OpenSoftTopic<'traces'>
  readonly clock: Pick<Clock, 'nowMs'>
}

interface Own {
  readonly record: SharedTrace
  /** UTC ms. */
  readonly untilMs: number
}

/**
 * Traces of identities that operators have requested at any controller. Controllers share them as
 * soft state, because any controller may create the circuit. Each controller withdraws its own
 * traces when they expire, so clocks of two controllers are never compared.
 */
export class TracedIdentities implements IdentityTraces {
  readonly #deps: TracedIdentitiesDeps
  /** Traces that were requested at this controller, by identity, oldest first. */
  readonly #own = new Map<string, Own>()
  readonly #heard = new Map<string, Map<string, SharedTrace>>()

  constructor(deps: TracedIdentitiesDeps) {
    this.#deps = deps
    deps.topic.onChange((owner, identityId, record) => this.#hear(owner, identityId, record))
  }

  of(identityId: string): IdentityTrace | null {
    const heard = this.#heard.get(identityId)
    if (heard === undefined && !this.#own.has(identityId)) return null
    const [first = null] = this.#live(identityId)
    return first
  }

  begin(
    identityId: string,
    { untilMs, ...trace }: IdentityTrace & { readonly untilMs: number },
  ): boolean {
    const [oldest] = this.#own.keys()
    const isFull = this.#own.size >= traceLimits.tracesMax && !this.#own.has(identityId)
    if (isFull && oldest !== undefined) this.#drop(oldest)
    return this.#publish(identityId, { ...trace, endedIds: this.#others(identityId) }, untilMs)
  }

  end(identityId: string): void {
    const endedIds = this.#others(identityId)
    if (endedIds.length === 0) {
      this.#drop(identityId)
      return
    }
    // The record that ends the traces of other controllers must outlast them, so it has the maximum
    // duration of a trace.
    const untilMs = this.#deps.clock.nowMs() + traceMsMax
    this.#publish(identityId, { traceId: '', channels: 0, endedIds }, untilMs)
  }

  /** Withdraws expired traces. */
  sweep(): void {
    const nowMs = this.#deps.clock.nowMs()
    for (const [identityId, { untilMs }] of this.#own) {
      if (untilMs <= nowMs) this.#drop(identityId)
    }
  }

  /** @returns the traces that have not been ended; the one of this controller comes first. */
  #live(identityId: string): SharedTrace[] {
    const own = this.#own.get(identityId)
    const isOver = own !== undefined && own.untilMs <= this.#deps.clock.nowMs()
    const mine = own === undefined || isOver ? [] : [own.record]
    const all = [...mine, ...(this.#heard.get(identityId)?.values() ?? [])]
    const ended = new Set(all.flatMap(({ endedIds }) => endedIds))
    return all.filter(({ traceId }) => traceId !== '' && !ended.has(traceId))
  }

  /**
   * IDs of the traces of other controllers. It includes those that are ended already, because the
   * record that ended a trace may be withdrawn before the trace.
   */
  #others(identityId: string): string[] {
    const heard = this.#heard.get(identityId)?.values() ?? []
    return Array.from(heard, ({ traceId }) => traceId).filter((id) => id !== '')
  }

  #publish(
    identityId: string,
    fields: IdentityTrace & { readonly endedIds: string[] },
    untilMs: number,
  ): boolean {
    const record = create(IdentityTraceSchema, fields)
    if (!this.#deps.topic.publish(identityId, record)) return false
    this.#own.delete(identityId)
    this.#own.set(identityId, { record, untilMs })
    return true
  }

  #drop(identityId: string): void {
    if (this.#own.delete(identityId)) this.#deps.topic.withdraw(identityId)
  }

  #hear(owner: string, identityId: string, record: SharedTrace | undefined): void {
    if (owner === this.#deps.selfId) return
    const heard = this.#heard.get(identityId) ?? new Map<string, SharedTrace>()
    if (record === undefined) heard.delete(owner)
    else heard.set(owner, record)
    if (heard.size === 0) this.#heard.delete(identityId)
    else this.#heard.set(identityId, heard)
  }
}
