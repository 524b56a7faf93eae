import { parseJsonOrNull } from '../../lib/text/json-value.ts'
import { openHttpsStream, toHttpsFault, readResponseText } from '../client/https-request.ts'
import { ApiRefusal, parseApiRefusal } from '../client/api-refusal.ts'
import type { ClientTlsKey } from '../client/client-key.ts'
import { sessionHeader } from '../../client/cluster-client.ts'

/**
 * Time without data after which the connection counts as lost; a controller sends data at least
 * every 15 s.
 */
const SILENCE_MS = 45_000
const REFUSAL_BYTES_MAX = 64 * 1024
/** Maximum characters of one event. An event contains at most two versions of a record. */
const EVENT_CHARACTERS_MAX = 16 * 1024 * 1024

interface SourceOptions {
  /** URL with path and query. */
  readonly url: string
  readonly caPem: string | null
  readonly token: string
  /** Client certificate and key for the TLS handshake. */
  readonly client?: ClientTlsKey | undefined
  /** Id of the last received event; '' if no event was received yet. */
  readonly lastId: string
  readonly onEvent: (event: ServerEvent) => void
  readonly signal: AbortSignal
}

export interface ServerEvent {
  /** Name of the event; `message` if the event has no name. */
  readonly name: string
  readonly id: string
  readonly data: string
}

/**
 * Reads the server-sent events of one controller until the stream ends.
 * @throws {HttpsFault} when the controller cannot be reached or the connection is lost; {@link
 * ApiRefusal} when the controller refuses the request.
 */
export async function readEvents(options: SourceOptions): Promise<void> {
  const { url, token, client, lastId, caPem, signal, onEvent } = options
  const headers = {
    accept: 'text/event-stream, application/json',
    ...sessionHeader(token),
    ...(lastId === '' ? {} : { 'last-event-id': lastId }),
  }
  try {
    const request = { url, method: 'GET', headers, caPem, client, timeoutMs: SILENCE_MS } as const
    const answer = await openHttpsStream(request, signal)
    const status = answer.statusCode ?? 0
    if (status !== 200)
      throw parseApiRefusal(
        status,
        parseJsonOrNull(await readResponseText(answer, REFUSAL_BYTES_MAX)),
      )
    let text = ''
    answer.setEncoding('utf8')
    for await (const chunk of answer as AsyncIterable<string>) {
      const blocks = (text + chunk).split('\n\n')
      text = blocks.pop() ?? ''
      if (text.length > EVENT_CHARACTERS_MAX) throw new Error('sends an event that is too long')
      for (const block of blocks) onEvent(eventIn(block))
    }
  } catch (error) {
    if (signal.aborted) return
    throw error instanceof ApiRefusal ? error : toHttpsFault(error, true, SILENCE_MS)
  }
}

function eventIn(block: string): ServerEvent {
  let [name, id, data] = ['message', '', '']
  for (const line of block.split('\n')) {
    const at = line.indexOf(': ')
    if (at <= 0) continue
    const value = line.slice(at + 2)
    switch (line.slice(0, at)) {
      case 'event':
        name = value
        break
      case 'id':
        id = value
        break
      case 'data':
        data = value
        break
    }
  }
  return { name, id, data }
}
