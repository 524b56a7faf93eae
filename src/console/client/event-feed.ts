import { signal } from '@preact/signals'

import { FABRIC_API_PATH } from '../../client/cluster-client.ts'
import { parseLogPosition } from '../../client/log-position.ts'
import { ApiRefusalError } from '../../client/client-errors.ts'
import type { ConsoleApiClient } from './api-client.ts'
import { EventLines, type StreamEvent } from './event-lines.ts'

/** An event of the network, from the event stream of a controller. */
export interface NetworkEvent {
  readonly id: string
  readonly namespace: string
  readonly timestamp: string
  readonly fields: Readonly<Record<string, unknown>>
}

export type EventFeedState = 'off' | 'live' | 'broken' | 'refused'

const RETRY_MS_MIN = 1_000
const RETRY_MS_MAX = 30_000
const KEPT_MAX = 500
/** A new tab also shows the events of this many log entries before its start. */
const ENTRIES_BEFORE = 50

/**
 * Locks shared by all tabs of an origin (`navigator.locks`): one tab has the lock, the others wait
 * for it.
 */
interface TabLocks {
  request(
    name: string,
    options: { readonly signal: AbortSignal },
    whileHeld: () => Promise<void>,
  ): Promise<unknown>
}

/** Events and state that the tab with the stream sends to the other tabs of the same identity. */
interface News {
  readonly kind: 'news'
  readonly state: EventFeedState
  /** Newest first. */
  readonly events: readonly NetworkEvent[]
  readonly lastId: string
  readonly isGap: boolean
}

/**
 * Messages between tabs. A new tab requests the stored events, and the tab with the stream sends
 * them.
 */
type FeedMessage =
  | { readonly kind: 'asked' }
  | { readonly kind: 'kept'; readonly news: News }
  | News

/**
 * The stream of events, shared by all tabs in which the same identity is logged in. One tab reads
 * the stream and sends the events to the others, because a browser opens at most six connections to
 * an origin. When that tab closes, another tab continues after the last event, at any controller
 * that responds. After a gap, pages reload their records.
 */
export class EventFeed {
  readonly state = signal<EventFeedState>('off')
  /** Newest first. */
  readonly events = signal<readonly NetworkEvent[]>([])
  /** Number of times that events may have been missed. */
  readonly gaps = signal(0)
  /** True: also keeps the frequent reports of traffic, which push out other events. */
  readonly keepsUsage = signal(false)
  readonly #client: ConsoleApiClient
  readonly #locks: TabLocks
  #identityId = ''
  #lastId = ''
  #passesGap = false
  #stopping: AbortController | null = null
  #channel: InstanceType<typeof BroadcastChannel> | null = null
  #isReader = false
  /**
   * True until the tab knows an event; it then still accepts all stored events from the tab with
   * the stream.
   */
  #isNew = true

  constructor(client: ConsoleApiClient, locks: TabLocks) {
    this.#client = client
    this.#locks = locks
  }

  /**
   * Follows the events that this identity may see; events that were meant for another identity are
   * discarded.
   */
  start(identityId: string): void {
    if (this.#stopping !== null) return
    if (identityId !== this.#identityId) {
      this.#lastId = ''
      this.events.value = []
    }
    this.#isNew = this.#lastId === ''
    this.#identityId = identityId
    const stopping = new AbortController()
    this.#stopping = stopping
    const name = `flotilla.events.${identityId}`
    const channel = new BroadcastChannel(name)
    this.#channel = channel
    channel.onmessage = ({ data }: { readonly data: unknown }) => this.#hear(data as FeedMessage)
    this.#send({ kind: 'asked' })
    const read = async (): Promise<void> => {
      this.#isReader = true
      await this.#run(stopping.signal)
      if (this.#stopping === stopping) this.#isReader = false
    }
    this.#locks.request(name, { signal: stopping.signal }, read).catch(() => undefined)
  }

  stop(): void {
    this.#stopping?.abort()
    this.#stopping = null
    this.#channel?.close()
    this.#channel = null
    this.#isReader = false
    this.state.value = 'off'
  }

  #send(message: FeedMessage): void {
    this.#channel?.postMessage(message)
  }

  #hear(message: FeedMessage): void {
    if (message.kind === 'asked') {
      if (this.#isReader) this.#send({ kind: 'kept', news: this.#news(this.events.value, false) })
    } else if (!this.#isReader) {
      const isKept = message.kind === 'kept'
      // Stored events are ignored by a tab that already has events, because it received every later
      // event itself.
      if (isKept && !this.#isNew) this.state.value = message.news.state
      else this.#show(isKept ? message.news : message, isKept)
      if (isKept) this.#isNew = false
    }
  }

  #show({ state, events, lastId, isGap }: News, isAll: boolean): void {
    this.state.value = state
    if (lastId !== '') this.#lastId = lastId
    if (isGap) this.gaps.value += 1
    const kept = this.keepsUsage.value
      ? events
      : events.filter(({ namespace }) => namespace !== 'usage')
    const before = isAll ? [] : this.events.value
    if (isAll || kept.length > 0) this.events.value = [...kept, ...before].slice(0, KEPT_MAX)
  }

  #news(events: readonly NetworkEvent[], isGap: boolean): News {
    return { kind: 'news', state: this.state.value, events, lastId: this.#lastId, isGap }
  }

  #enter(state: EventFeedState): void {
    this.state.value = state
    this.#send(this.#news([], false))
  }

  async #run(stopped: AbortSignal): Promise<void> {
    for (let waitMs = RETRY_MS_MIN; !stopped.aborted;) {
      try {
        await this.#read(stopped)
        waitMs = RETRY_MS_MIN
      } catch (error) {
        if (error instanceof ApiRefusalError && error.status === 401) {
          // Releases the lock, because another tab may have a session that the controller accepts.
          this.#enter('refused')
          return
        }
      }
      if (stopped.aborted) return
      this.#enter('broken')
      await rest(waitMs, stopped)
      waitMs = Math.min(2 * waitMs, RETRY_MS_MAX)
    }
  }

  async #read(stopped: AbortSignal): Promise<void> {
    const headers = new Headers({ accept: 'text/event-stream' })
    const isFirst = this.#lastId === ''
    if (isFirst) this.#lastId = eventBefore(this.#client.position, ENTRIES_BEFORE)
    // A new tab has missed no earlier event, so a gap before its first event is ignored.
    this.#passesGap = isFirst
    if (this.#lastId !== '') headers.set('last-event-id', this.#lastId)
    const response = await this.#client.stream(`${FABRIC_API_PATH}/events`, headers, stopped)
    if (response.body === null) return
    this.#enter('live')
    const lines = new EventLines()
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
      this.#take(lines.push(piece))
    }
  }

  #take(events: readonly StreamEvent[]): void {
    const shown: NetworkEvent[] = []
    let isGap = false
    for (const { id, type, data } of events) {
      if (id !== '') this.#lastId = id
      if (type === 'gap') {
        isGap ||= !this.#passesGap
        this.#passesGap = false
      } else if (type !== 'ready' && type !== 'closed') {
        const event = eventOf(id, data)
        if (isNews(event)) shown.unshift(event)
      }
    }
    const news = this.#news(shown, isGap)
    this.#show(news, false)
    this.#send(news)
  }
}

/**
 * Id of the event at which a new tab begins: a few log entries before the log position that the tab
 * saw first.
 */
function eventBefore(position: string | null, entries: number): string {
  const [generation, index] = parseLogPosition(position) ?? []
  if (generation === undefined || index === undefined) return ''
  return `${generation}:${Math.max(1, index - entries)}:1`
}

/**
 * Waits, but returns immediately when the feed is stopped: a tab that waits longer would prevent
 * the other tabs from reading the stream.
 */
async function rest(ms: number, stopped: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      stopped.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    stopped.addEventListener('abort', end)
  })
}

/**
 * Whether the console shows an event. It omits metrics, which are for monitoring systems, and
 * commit events, which repeat the changes of their entry.
 */
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
