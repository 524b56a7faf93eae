import { expect, test } from 'vitest'

import type { SessionTokenSource } from '../../src/client/cluster-client.ts'
import {
  ApiRefusalError,
  OutcomeUnknownError,
  UnreachableError,
} from '../../src/client/client-errors.ts'
import { ConsoleApiClient } from '../../src/console/client/api-client.ts'
import { EventLines } from '../../src/console/client/event-lines.ts'
import { MemberOrigins } from '../../src/console/client/members.ts'

// Goal: the console continues with another controller, makes each change once, and never shows an
// older state than before.

interface Sent {
  readonly origin: string
  readonly method: string
  readonly headers: Headers
}

type Answering = (sent: Sent) => Response

const one = 'https://one.test'
const two = 'https://two.test:1281'

type MemberRow = Parameters<MemberOrigins['learn']>[0][number]

const row = (id: string, origin: string): MemberRow => ({
  id,
  apiAddresses: {
    'edge-management': [{ url: `${origin}/edge/management/v1` }],
    fabric: [{ url: `${origin}/fabric/v1` }],
  },
})

const json = (status: number, body: object, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  })

const session: SessionTokenSource = {
  token: () => 'a token',
  renewed: () => Promise.resolve(null),
}

/** A client of two controllers, of which the first one has served the page. */
function clientOf(answering: Answering, source = session) {
  const members = new MemberOrigins(one)
  members.learn([row('ctrl1', one), row('ctrl2', two)])
  const sent: Sent[] = []
  const fetcher: typeof fetch = (input, init) => {
    const url = new URL(String(input))
    const request = {
      origin: url.origin,
      method: init?.method ?? 'GET',
      headers: new Headers(init?.headers),
    }
    sent.push(request)
    try {
      return Promise.resolve(answering(request))
    } catch (error) {
      return Promise.reject(error as Error)
    }
  }
  return { client: new ConsoleApiClient(members, source, fetcher), members, sent }
}

const refusing = (): never => {
  throw new TypeError('Failed to fetch')
}

const noLeader = { error: { code: 'CLUSTER_NO_LEADER', message: 'no leader' } }

test('the client skips an unreachable controller, and keeps using the controller that responds', async () => {
  const { client, members, sent } = clientOf(({ origin }) =>
    origin === one ? refusing() : json(200, { data: [] }),
  )
  await client.ask({ path: '/x' })
  await client.ask({ path: '/x' })
  expect(sent.map(({ origin }) => origin)).toEqual([one, two, two])
  expect(members.currentName.value).toBe('ctrl2')
  expect(members.failed.value).toEqual([one])
})

test('if a controller knows no leader, the client repeats a change at the next controller with the same request ID', async () => {
  const { client, sent } = clientOf(({ origin }) =>
    origin === one ? json(503, noLeader) : json(201, { data: {} }),
  )
  await client.ask({ method: 'POST', path: '/x', body: {} })
  const ids = sent.map(({ headers }) => headers.get('net-request-id'))
  expect(ids).toEqual([ids[0], ids[0]])
  expect(ids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('the client reports a missing leader if no controller knows one', async () => {
  const { client } = clientOf(() => json(503, noLeader))
  const refusal = await client.ask({ method: 'POST', path: '/x' }).catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(ApiRefusalError)
  expect((refusal as ApiRefusalError).code).toBe('CLUSTER_NO_LEADER')
})

test('the client never repeats a change that has no request ID', async () => {
  const { client, sent } = clientOf(refusing)
  const asked = client.ask({ method: 'POST', path: '/x', isOnceOnly: true })
  await expect(asked).rejects.toBeInstanceOf(OutcomeUnknownError)
  expect(sent).toHaveLength(1)
  expect(sent[0]?.headers.get('net-request-id')).toBeNull()
})

test('the client repeats a read at the next controller, without a request ID', async () => {
  const { client, sent } = clientOf(({ origin }) =>
    origin === one ? refusing() : json(200, { data: {} }),
  )
  await client.ask({ method: 'POST', path: '/x', body: {}, changesNothing: true })
  expect(sent.map(({ origin }) => origin)).toEqual([one, two])
  expect(sent.map(({ headers }) => headers.get('net-request-id'))).toEqual([null, null])
})

test('the client reports that no controller responds', async () => {
  const { client } = clientOf(refusing)
  await expect(client.ask({ path: '/x' })).rejects.toBeInstanceOf(UnreachableError)
})

test('a read by the client requests a state that contains everything that the console has shown before', async () => {
  let index = 7
  const { client, sent } = clientOf(() => json(200, {}, { 'net-index': `1:${index}` }))
  await client.ask({ path: '/x' })
  index = 5
  await client.ask({ path: '/x' })
  await client.ask({ path: '/x' })
  expect(sent.map(({ headers }) => headers.get('net-min-index'))).toEqual([null, '1:7', '1:7'])
})

test('the client renews a refused session once, and repeats the request', async () => {
  let token = 'old'
  const source: SessionTokenSource = {
    token: () => token,
    renewed: () => {
      token = 'new'
      return Promise.resolve(token)
    },
  }
  const { client, sent } = clientOf(
    ({ headers }) => json(headers.get('net-session') === 'new' ? 200 : 401, {}),
    source,
  )
  expect((await client.ask({ path: '/x' })).status).toBe(200)
  expect(sent).toHaveLength(2)
})

test('the refusal of a request contains the name of the faulty field', async () => {
  const cause = { field: 'name', reason: 'duplicate value' }
  const { client } = clientOf(() =>
    json(400, { error: { code: 'COULD_NOT_VALIDATE', message: 'The request is invalid', cause } }),
  )
  const refusal = await client.ask({ path: '/x' }).catch((error: unknown) => error)
  expect((refusal as ApiRefusalError).fault).toEqual(cause)
})

test('the client sends the token only to addresses that the cluster lists, and only over TLS', () => {
  const members = new MemberOrigins(one)
  members.learn([
    row('plain', 'http://plain.test'),
    { id: 'none', apiAddresses: {} },
    { id: 'half', apiAddresses: { fabric: [{ url: 'https://half.test/fabric/v1' }] } },
    row('ctrl2', two),
  ])
  expect(members.asked.order()).toEqual([one, two])
})

test('a response of a controller that the user selected clears this controller’s failure, and does not change the current controller', async () => {
  const away = new Set([two])
  const { client, members } = clientOf(({ origin }) =>
    away.has(origin) ? refusing() : json(200, { data: [] }),
  )
  await expect(client.ask({ path: '/x', origin: two })).rejects.toBeInstanceOf(UnreachableError)
  expect(members.failed.value).toEqual([two])
  away.clear()
  await client.ask({ path: '/x', origin: two })
  expect(members.failed.value).toEqual([])
  expect(members.current.value).toBe(one)
})

test('the client reads events correctly however the stream is split into pieces', () => {
  const text = ': ready\n\nid: 1:2:3\nevent: ready\ndata: {"a":\ndata: 1}\n\ndata: x\r\n\r\n'
  const whole = new EventLines().push(text)
  const lines = new EventLines()
  const cut = [...text].flatMap((piece) => lines.push(piece))
  expect(whole).toEqual([
    { id: '1:2:3', type: 'ready', data: '{"a":\n1}' },
    { id: '1:2:3', type: 'message', data: 'x' },
  ])
  expect(cut.map(({ data }) => data)).toEqual(['{"a":\n1}', 'x'])
})

test('the cluster counts as silent while no controller responds, and no longer once one responds', async () => {
  const down = new Set([one])
  const { client, members } = clientOf(({ origin }) =>
    down.has(origin) ? refusing() : json(200, {}),
  )
  await client.ask({ path: '/x' })
  expect(members.failed.value).toEqual([one])
  expect(members.isSilent.value).toBe(false)
  down.add(two)
  await client.ask({ path: '/x' }).catch(() => undefined)
  expect(members.isSilent.value).toBe(true)
  down.delete(one)
  await client.ask({ path: '/x' })
  expect(members.isSilent.value).toBe(false)
})
