import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'

import { HttpsFault, reasonOf } from '../client/https.ts'
import { type ApiRefusal, refusalIn } from '../client/refusal.ts'
import { jsonOrNull } from '../../lib/text/json-or-null.ts'

/** A controller is heard at least each 15 s. */
const SILENCE_MS = 45_000
const REFUSAL_BYTES_MAX = 64 * 1024
/** An event holds a record twice at most. */
const EVENT_CHARACTERS_MAX = 16 * 1024 * 1024

export interface SourceOptions {
  /** With path and query. */
  readonly url: string
  readonly caPem: string | null
  readonly token: string
  /** '' at the beginning. */
  readonly lastId: string
  readonly onEvent: (event: ServerEvent) => void
  readonly signal: AbortSignal
}

export interface ServerEvent {
  /** `message` where it has no name. */
  readonly name: string
  readonly id: string
  readonly data: string
}

/**
 * Server-sent events of one controller, until they end.
 * @throws {HttpsFault} when it cannot be asked or is lost; {@link ApiRefusal} when it refuses.
 */
export function readEvents(options: SourceOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const { url, token, lastId, caPem, signal } = options
    const fail = (error: unknown): void => {
      if (signal.aborted) resolve()
      else reject(new HttpsFault(reasonOf(error, SILENCE_MS), true, error))
    }
    const asked = request(
      url,
      {
        agent: false,
        minVersion: 'TLSv1.2',
        signal,
        ...(caPem === null ? {} : { ca: caPem }),
        headers: {
          accept: 'text/event-stream, application/json',
          'net-session': token,
          ...(lastId === '' ? {} : { 'last-event-id': lastId }),
        },
      },
      (answer) => {
        answer.on('error', fail)
        answer.on('close', resolve)
        if (answer.statusCode === 200) readStream(answer, options.onEvent)
        else readRefusal(answer, reject)
      },
    )
    asked.setTimeout(SILENCE_MS, () => {
      asked.destroy(Object.assign(new Error('is silent'), { code: 'ETIMEDOUT' }))
    })
    asked.on('error', fail)
    asked.end()
  })
}

function readRefusal(answer: IncomingMessage, reject: (error: ApiRefusal) => void): void {
  let text = ''
  answer.setEncoding('utf8')
  answer.on('data', (chunk: string) => {
    if (text.length < REFUSAL_BYTES_MAX) text += chunk
  })
  answer.on('end', () => reject(refusalIn(answer.statusCode ?? 0, jsonOrNull(text))))
}

function readStream(answer: IncomingMessage, onEvent: SourceOptions['onEvent']): void {
  let text = ''
  answer.setEncoding('utf8')
  answer.on('data', (chunk: string) => {
    const blocks = (text + chunk).split('\n\n')
    text = blocks.pop() ?? ''
    if (text.length > EVENT_CHARACTERS_MAX)
      answer.destroy(new Error('sends an event that is too long'))
    for (const block of blocks) onEvent(eventIn(block))
  })
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
