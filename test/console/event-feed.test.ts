import { afterEach, expect, test } from 'vitest'

import type { SessionTokenSource } from '../../src/client/cluster-client.ts'
import { ConsoleApiClient } from '../../src/console/client/api-client.ts'
import { EventFeed } from '../../src/console/client/event-feed.ts'
import { MemberOrigins } from '../../src/console/client/members.ts'
import { eventually } from '../support/eventually.ts'

// Goal: all tabs of an identity in a browser share one event stream, and each tab shows all events.

const session: SessionTokenSource = {
  token: () => 'a token',
  renewed: () => Promise.resolve(null),
}

interface Stream {
  readonly lastId: string | null
  say(id: string, type?: string): void
  end(): void
}

let streams: Stream[] = []
let status = 200
const feeds: EventFeed[] = []
/** Each test uses another name, because tabs of a browser find each other by this name. */
let count = 0
let identityId = ''

afterEach(() => {
  for (const feed of feeds.splice(0)) feed.stop()
  streams = []
  status = 200
})

function streamOf(lastId: string | null, signal: AbortSignal | null | undefined): Response {
  const encoder = new TextEncoder()
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const body = new ReadableStream<Uint8Array>({
    start: (given) => {
      controller = given
    },
  })
  signal?.addEventListener('abort', () => controller?.error(signal.reason))
  streams.push({
    lastId,
    say: (id, type = 'service') => {
      const data = JSON.stringify({ namespace: type, timestamp: '2030-01-01T00:00:00Z' })
      controller?.enqueue(encoder.encode(`id: ${id}\nevent: ${type}\ndata: ${data}\n\n`))
    },
    end: () => controller?.close(),
  })
  return new Response(body, { status: 200 })
}

function tab(): EventFeed {
  const fetcher: typeof fetch = (_input, init) => {
    const lastId = new Headers(init?.headers).get('last-event-id')
    if (status === 200) return Promise.resolve(streamOf(lastId, init?.signal))
    return Promise.resolve(new Response('{}', { status }))
  }
  const client = new ConsoleApiClient(new MemberOrigins('https://one.test'), session, fetcher)
  const feed = new EventFeed(client, navigator.locks)
  feeds.push(feed)
  return feed
}

function started(id = identityId): EventFeed {
  const feed = tab()
  feed.start(id)
  return feed
}

function anIdentity(): void {
  count += 1
  identityId = `identity-${count}`
}

const ids = (feed: EventFeed): string[] => feed.events.value.map(({ id }) => id)

test('one tab of the console reads the event stream, and all tabs of the browser show the same events', async () => {
  anIdentity()
  const first = started()
  await eventually(() => {
    expect(first.state.value).toBe('live')
  })
  streams[0]?.say('1:5:1')
  await eventually(() => {
    expect(ids(first)).toEqual(['1:5:1'])
  })
  const others = [started(), started()]
  await eventually(() => {
    expect(others.map(ids)).toEqual([['1:5:1'], ['1:5:1']])
  })
  streams[0]?.say('1:6:1')
  await eventually(() => {
    expect(others.map(ids)).toEqual([
      ['1:6:1', '1:5:1'],
      ['1:6:1', '1:5:1'],
    ])
    expect(others.map(({ state }) => state.value)).toEqual(['live', 'live'])
  })
  expect(streams).toHaveLength(1)
})

test('another tab continues after the last event when the reading tab is closed', async () => {
  anIdentity()
  const first = started()
  await eventually(() => {
    expect(streams).toHaveLength(1)
  })
  const second = started()
  streams[0]?.say('1:7:1')
  await eventually(() => {
    expect(ids(second)).toEqual(['1:7:1'])
  })
  first.stop()
  await eventually(() => {
    expect(streams).toHaveLength(2)
  })
  expect(streams[1]?.lastId).toBe('1:7:1')
  streams[1]?.say('1:8:1')
  await eventually(() => {
    expect(ids(second)).toEqual(['1:8:1', '1:7:1'])
  })
  expect(ids(first)).toEqual(['1:7:1'])
})

test('a gap in the event stream is counted once in each tab that showed events before the gap', async () => {
  anIdentity()
  const first = started()
  await eventually(() => {
    expect(streams).toHaveLength(1)
  })
  streams[0]?.say('1:7:1')
  const second = started()
  await eventually(() => {
    expect(ids(second)).toEqual(['1:7:1'])
  })
  streams[0]?.end()
  await eventually(() => {
    expect(streams).toHaveLength(2)
  })
  streams[1]?.say('1:90:1', 'gap')
  await eventually(() => {
    expect([first.gaps.value, second.gaps.value]).toEqual([1, 1])
  })
})

test('a tab whose session has ended lets another tab read the event stream', async () => {
  anIdentity()
  status = 401
  const first = started()
  await eventually(() => {
    expect(first.state.value).toBe('refused')
  })
  status = 200
  const second = started()
  await eventually(() => {
    expect([first.state.value, second.state.value]).toEqual(['live', 'live'])
  })
  // After another log-in, the tab follows the events without a second stream.
  first.stop()
  first.start(identityId)
  streams[0]?.say('1:9:1')
  await eventually(() => {
    expect(ids(first)).toEqual(['1:9:1'])
  })
  expect(streams).toHaveLength(1)
})

test('another identity has a separate event stream, and sees no earlier events', async () => {
  anIdentity()
  const first = started()
  await eventually(() => {
    expect(streams).toHaveLength(1)
  })
  streams[0]?.say('1:7:1')
  await eventually(() => {
    expect(ids(first)).toEqual(['1:7:1'])
  })
  const stranger = started(`${identityId}-b`)
  await eventually(() => {
    expect(streams).toHaveLength(2)
  })
  expect(streams[1]?.lastId).toBeNull()
  first.stop()
  first.start(`${identityId}-b`)
  streams[1]?.say('1:8:1')
  await eventually(() => {
    expect([ids(first), ids(stranger)]).toEqual([['1:8:1'], ['1:8:1']])
  })
})
