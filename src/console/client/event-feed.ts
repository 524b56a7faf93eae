import { signal } from '@preact/signals'

import { type ApiClient, FABRIC } from './api-client.ts'
import { eventBefore } from './positions.ts'
import { EventLines, type StreamEvent } from './event-lines.ts'
import { ApiProblem } from './problem.ts'

export interface NetworkEvent {
  readonly id: string
  readonly namespace: string
  readonly timestamp: string
  readonly fields: Readonly<Record<string, unknown>>
}

export type FeedState = 'off' | 'live' | 'broken' | 'refused'

const RETRY_MS_MIN = 1_000
const RETRY_MS_MAX = 30_000
const KEPT_MAX = 500
/** A new tab shows the events of the last entries of the log. */
const ENTRIES_BEFORE = 50

/**
 * The one stream of events of this tab. It goes on after the last event on whichever controller
 * answers; after a gap, whoever shows records reads them again.
 */
export class EventFeed {
  readonly state = signal<FeedState>('off')
  /** Newest first. */
  readonly events = signal<readonly NetworkEvent[]>([])
  /** Counts the times that what is shown may have missed something. */
  readonly gaps = signal(0)
  readonly #client: ApiClient
  #lastId = ''
  #passesGap = false
  #stopping: AbortController | null = null

  constructor(client: ApiClient) {
    this.#client = client
  }

  start(): void {
    if (this.#stopping !== null) return
    const stopping = new AbortController()
    this.#stopping = stopping
    this.#run(stopping.signal).catch(() => undefined)
  }

  stop(): void {
    this.#stopping?.abort()
    this.#stopping = null
    this.state.value = 'off'
  }

  async #run(stopped: AbortSignal): Promise<void> {
    for (let waitMs = RETRY_MS_MIN; !stopped.aborted;) {
      try {
        await this.#read(stopped)
        waitMs = RETRY_MS_MIN
      } catch (error) {
        if (error instanceof ApiProblem && error.status === 401) {
          this.state.value = 'refused'
          return
        }
      }
      if (stopped.aborted) return
      this.state.value = 'broken'
      await new Promise((resolve) => setTimeout(resolve, waitMs))
      waitMs = Math.min(2 * waitMs, RETRY_MS_MAX)
    }
  }

  async #read(stopped: AbortSignal): Promise<void> {
    const headers = new Headers({ accept: 'text/event-stream' })
    const isFirst = this.#lastId === ''
    if (isFirst) this.#lastId = eventBefore(this.#client.position, ENTRIES_BEFORE)
    // A new tab has missed nothing that was before it.
    this.#passesGap = isFirst
    if (this.#lastId !== '') headers.set('last-event-id', this.#lastId)
    const response = await this.#client.stream(`${FABRIC}/events`, headers, stopped)
    if (response.body === null) return
    this.state.value = 'live'
    const lines = new EventLines()
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
      this.#take(lines.push(piece))
    }
  }

  #gap(): void {
    if (!this.#passesGap) this.gaps.value += 1
    this.#passesGap = false
  }

  #take(events: readonly StreamEvent[]): void {
    const shown: NetworkEvent[] = []
    for (const { id, type, data } of events) {
      if (id !== '') this.#lastId = id
      if (type === 'gap') this.#gap()
      else if (type !== 'ready' && type !== 'closed') {
        const event = eventOf(id, data)
        if (isNews(event)) shown.unshift(event)
      }
    }
    if (shown.length > 0) this.events.value = [...shown, ...this.events.value].slice(0, KEPT_MAX)
  }
}

/** Metrics are for monitoring systems, and the end of an entry repeats what its changes say. */
function isNews({ namespace, fields }: NetworkEvent): boolean {
  return namespace !== 'metrics' && fields['eventType'] !== 'committed'
}

function eventOf(id: string, data: string): NetworkEvent {
  const fields = fieldsOf(data)
  const { namespace, timestamp } = fields
  return {
    id,
    namespace: typeof namespace === 'string' ? namespace : '',
    timestamp: typeof timestamp === 'string' ? timestamp : '',
    fields,
  }
}

function fieldsOf(data: string): Readonly<Record<string, unknown>> {
  try {
    const parsed = JSON.parse(data) as unknown
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
