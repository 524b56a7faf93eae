import {
  CommandFailure,
  EXIT_DENIED,
  EXIT_FAILED,
  EXIT_UNREACHABLE,
} from '../../controller/command-failure.ts'
import type { EVENT_NAMESPACES, EventNamespace } from '../../lib/event-namespaces.ts'
import { escapeUnprintable, printableLine } from '../../lib/text/terminal-text.ts'
import { isJsonObject, parseJsonOrNull } from '../../lib/text/json-value.ts'
import { commandTimeouts } from '../../client/timeouts.ts'
import { findContext, logInCommandLine, readContexts } from '../client/context-file.ts'
import { openContextClient, contextSession } from '../client/context-client.ts'
import { contextTlsKey } from '../client/client-key.ts'
import type { RenewedSession } from '../client/session-tokens.ts'
import { ApiRefusal } from '../client/api-refusal.ts'
import { HttpsFault } from '../client/https-request.ts'
import { printLine, printNote } from '../terminal/output.ts'
import { readEvents, type ServerEvent } from './event-source.ts'

const EVENTS = '/fabric/v1/events'
/**
 * Interval of requests that keep the session from expiring, because reading a stream does not count
 * as activity of the session.
 */
const KEEP_SESSION_MS = 20_000

export interface EventsCommandOptions {
  readonly context?: string
  readonly namespace?: readonly EventNamespace[]
  readonly entityType?: readonly string[]
  readonly metricFilter?: string
  readonly sourceFilter?: string
  readonly after?: string
  readonly count?: number
  readonly output: 'text' | 'json'
}

/**
 * Prints events until the wanted number is printed. If a controller becomes unreachable, continues
 * with the events of another one.
 * @throws {CommandFailure} exit 3 when the session has ended, or its identity may not see the
 * events; the failure of the last controller when none responds for a long time.
 */
export async function followEvents(options: EventsCommandOptions): Promise<void> {
  const client = openContextClient(options)
  const keeping = setInterval(() => {
    client.ask({ method: 'GET', path: '/current-api-session' }).catch(() => undefined)
  }, KEEP_SESSION_MS)
  try {
    await new EventFollower(options).run()
  } finally {
    clearInterval(keeping)
  }
}

class EventFollower {
  readonly #options: EventsCommandOptions
  readonly #context: ReturnType<typeof findContext>
  readonly #session: RenewedSession | null
  readonly #stop = new AbortController()
  /** The session token of the current stream. */
  #token = ''
  /** True if the token has been renewed and no event has arrived since. */
  #isRenewed = false
  #lastId: string
  #left: number
  /** Reason that the last controller gave for closing the stream; '' if it gave none. */
  #closed = ''
  #hasHeard = false

  constructor(options: EventsCommandOptions) {
    this.#options = options
    this.#context = findContext(readContexts(), options.context)
    this.#session = contextSession(this.#context.name, this.#context.context).session ?? null
    this.#lastId = options.after ?? ''
    this.#left = options.count ?? Infinity
  }

  async run(): Promise<void> {
    const { controllers } = this.#context.context
    let silentSinceMs = performance.now()
    for (let at = 0; !this.#stop.signal.aborted; at += 1) {
      this.#hasHeard = false
      const fault = await this.#follow(controllers[at % controllers.length] ?? '')
      if (this.#stop.signal.aborted) return
      await this.#judgeEnd()
      if (this.#hasHeard) silentSinceMs = performance.now()
      else if (performance.now() - silentSinceMs > commandTimeouts.patienceMs) throw fault
      await new Promise((resolve) => setTimeout(resolve, commandTimeouts.pauseMs))
    }
  }

  /**
   * Prints the events of one controller until the stream ends.
   * @returns why the stream ended; shown to the user only if no other controller continues the
   * stream.
   * @throws an error that another controller would return as well.
   */
  async #follow(controller: string): Promise<Error> {
    const { context } = this.#context
    const { caPem } = context
    try {
      this.#token = (await this.#session?.token()) ?? context.token ?? ''
      await readEvents({
        url: `${controller}${EVENTS}?${this.#query()}`,
        caPem,
        token: this.#token,
        ...contextTlsKey(context),
        lastId: this.#lastId,
        signal: this.#stop.signal,
        onEvent: (event) => this.#take(event),
      })
      return new CommandFailure(
        EXIT_UNREACHABLE,
        `${controller}: it closed the stream (${this.#closed})`,
      )
    } catch (error) {
      if (error instanceof HttpsFault) {
        return new CommandFailure(EXIT_FAILED, `${controller}: it ${error.message}`, error)
      }
      if (!(error instanceof ApiRefusal)) throw error
      if (error.status === 429 || error.status >= 500) return error
      if (error.status !== 401) throw error
      await this.#renew()
      return error
    }
  }

  #query(): string {
    const { namespace, entityType, metricFilter, sourceFilter } = this.#options
    const query = new URLSearchParams()
    if (namespace !== undefined) query.set('namespaces', namespace.join(','))
    if (entityType !== undefined) query.set('entityTypes', entityType.join(','))
    if (metricFilter !== undefined) query.set('metricFilter', metricFilter)
    if (sourceFilter !== undefined) query.set('sourceFilter', sourceFilter)
    return query.toString()
  }

  #take({ name, id, data }: ServerEvent): void {
    this.#hasHeard = true
    this.#isRenewed = false
    if (id !== '') this.#lastId = id
    if (data === '' || this.#left <= 0) return
    const event = parseJsonOrNull(data)
    if (!isJsonObject(event)) throw new HttpsFault('sent an event that is not a JSON object', true)
    if (name === 'message') this.#print(event, data)
    else if (name === 'closed') this.#closed = printableLine(String(event['reason']), 200)
    else if (name === 'gap') {
      const [from, to] = [event['from'], event['to']].map((id) => printableLine(String(id), 200))
      printNote(
        `flotilla: missed the events after ${from}, they are no longer kept; resuming after ${to}`,
      )
    }
  }

  #print(event: Readonly<Record<string, unknown>>, text: string): void {
    // Metrics are printed only if the user requests their namespace, because they are frequent.
    if (this.#options.namespace === undefined && event['namespace'] === METRICS) return
    printLine(this.#options.output === 'json' ? escapeUnprintable(text) : eventLine(event))
    this.#left -= 1
    if (this.#left <= 0) this.#stop.abort()
  }

  /**
   * Renews the token if the stream ended with its session.
   * @throws {CommandFailure} if the session cannot be renewed.
   */
  async #judgeEnd(): Promise<void> {
    if (this.#closed.includes('session')) await this.#renew()
    this.#closed = ''
  }

  /** Renews the token, because the stream of an OIDC session ends when its token expires. */
  async #renew(): Promise<void> {
    if (this.#isRenewed) throw this.#notAllowed()
    this.#isRenewed = true
    const renewed = (await this.#session?.renewed(this.#token)) ?? null
    if (renewed === null) throw this.#notAllowed()
  }

  #notAllowed(): CommandFailure {
    const { name, context } = this.#context
    return new CommandFailure(
      EXIT_DENIED,
      `the session has ended, or its identity may not see these events; log in again, or ask an administrator for ops.read: ${logInCommandLine(name, context)}`,
    )
  }
}

const METRICS: (typeof EVENT_NAMESPACES)[number] = 'metrics'

type EventJson = Readonly<Record<string, unknown>>

/** One line for the terminal: time, controller, event, and its other fields. */
export function eventLine(event: EventJson): string {
  const { timestamp, namespace, event_src_id: controller } = event
  const type = textOf(event['event_type'] ?? event['eventType'])
  const head = [timestamp, controller, type === '' ? namespace : `${textOf(namespace)}.${type}`]
  return `${head.map(textOf).join('  ')}  ${shown(event)}`.trimEnd()
}

/** Fields that the line shows elsewhere, or that are of no use to the user. */
const said = new Set([
  'namespace',
  'event_src_id',
  'timestamp',
  'event_id',
  'event_type',
  'eventType',
  'version',
  'initialState',
  'finalState',
  'metadata',
  'eventId',
  'isParentEvent',
  'token',
])

function shown(event: EventJson): string {
  const record = objectIn(event, 'finalState') ?? objectIn(event, 'initialState')
  const author = objectIn(objectIn(event, 'metadata') ?? {}, 'author')
  const parts = Object.entries(event).flatMap(([name, value]) =>
    said.has(name) || value === '' ? [] : `${textOf(name)}=${textOf(value)}`,
  )
  if (record !== undefined)
    parts.push(`id=${textOf(record['id'])}`, `name=${textOf(record['name'])}`)
  if (author !== undefined)
    parts.push(`by=${textOf(author['name'] === '' ? author['id'] : author['name'])}`)
  return parts.join(' ')
}

function objectIn(event: EventJson, name: string): EventJson | undefined {
  const value = event[name]
  // @guard answers-of-a-hostile-server--event
  return isJsonObject(value) ? value : undefined
}

/** The value on one line without control characters, because clients can choose its content. */
function textOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // @guard names-at-a-terminal--event
  return printableLine(text)
}
