import { expect, test } from 'vitest'

import {
  ClusterClient,
  type ClusterResponse,
  type ClusterRequest,
  type SessionTokenSource,
  type MemberTarget,
} from '../../src/client/cluster-client.ts'
import { clusterTrafficLimits } from '../../src/cluster/traffic/limits.ts'
import { MemberOrder } from '../../src/client/member-order.ts'
import { laterLogPosition } from '../../src/client/log-position.ts'
import {
  ApiRefusalError,
  NoResponseError,
  OutcomeUnknownError,
  UnreachableError,
} from '../../src/client/client-errors.ts'
import { newRequestId } from '../../src/client/request-id.ts'
import {
  FAILED_MEMBER_AVOIDANCE_MS,
  OWN_DATA_TIMEOUT_MS,
  type ClientTimeouts,
  commandTimeouts,
  consoleTimeouts,
} from '../../src/client/timeouts.ts'

// Goal: the command line, the console and the tunnel share one client, which decides which member
// to call, how long, how often and with which session; a write takes effect at most once.

const [one, two, three] = ['https://one.test', 'https://two.test', 'https://three.test']

interface Asked extends MemberTarget {
  readonly request: ClusterRequest
}

type Answering = (asked: Asked) => ClusterResponse | Promise<ClusterResponse>

const answer = (
  status: number,
  body: object = { data: [] },
  headers: Readonly<Record<string, string>> = {},
): ClusterResponse => ({ status, body, header: (name) => headers[name] ?? null })

const refusal = (status: number, code: string): ClusterResponse =>
  answer(status, { error: { code, message: `refused: ${code}` } })

const isAway = (): never => {
  throw new NoResponseError('refused the connection', false)
}
const isSilent = (): never => {
  throw new NoResponseError('did not respond', true)
}

const fixed: SessionTokenSource = {
  token: () => 'token',
  renewed: () => Promise.resolve(null),
}

/** A client of three members. Each request takes a second on its clock. */
function clientOf(
  answering: Answering,
  { session = fixed, waits = { pauseMs: 0 } as Partial<ClientTimeouts> } = {},
) {
  const asked: Asked[] = []
  let nowMs = 0
  const clock = { monotonicMs: () => nowMs }
  const members = new MemberOrder([one, two, three], clock)
  let ids = 0
  const client = new ClusterClient<ClusterRequest>({
    members,
    session,
    send: async (request, to) => {
      nowMs += 1000
      asked.push({ ...to, request })
      return await Promise.resolve(answering({ ...to, request }))
    },
    waits: { ...commandTimeouts, ...waits },
    clock,
    requestId: (laterMs) => `${laterMs === 0 ? '' : 'later '}id ${(ids += 1)}`,
    readsOwnWrites: true,
  })
  return {
    client,
    members,
    asked,
    origins: () => asked.splice(0).map(({ origin }) => origin),
    pass: (ms: number) => (nowMs += ms),
  }
}

const once = { method: 'POST', isOnceOnly: true } as const

test('the client tries members that have failed recently after all others, and 15 seconds after the failure again in their usual position', async () => {
  const away = new Set([one])
  const { client, origins, pass } = clientOf(({ origin }) =>
    away.has(origin) ? isAway() : answer(200),
  )
  await client.ask({})
  expect(origins()).toEqual([one, two])
  away.add(two)
  await client.ask({})
  expect(origins()).toEqual([two, three])
  away.add(three)
  await expect(client.ask({})).rejects.toBeInstanceOf(UnreachableError)
  expect(origins()).toEqual([three, one, two])
  away.clear()
  pass(FAILED_MEMBER_AVOIDANCE_MS)
  await client.ask({})
  expect(origins()).toEqual([three])
})

test('the client sends a write to one member after the other with one request ID until there is a leader', async () => {
  let leaderless = 5
  const { client, asked } = clientOf(() =>
    (leaderless -= 1) < 0 ? answer(201) : refusal(503, 'CLUSTER_NO_LEADER'),
  )
  await client.ask({ method: 'POST' })
  expect(asked.map(({ headers }) => headers['net-request-id'])).toEqual(
    Array.from({ length: 6 }, () => 'id 1'),
  )
  expect(new Set(asked.map(({ origin }) => origin))).toEqual(new Set([one, two, three]))
  await client.ask({ method: 'POST' })
  expect(asked.at(-1)?.headers['net-request-id']).toBe('id 2')
})

test('the client repeats a new write with an ID of a later time if the cluster refuses its request ID as too old', async () => {
  let refusals = 3
  const { client, asked } = clientOf(() =>
    (refusals -= 1) < 0 ? answer(201) : refusal(409, 'REQUEST_ID_EXPIRED'),
  )
  await client.ask({ method: 'POST' })
  expect(asked.map(({ headers }) => headers['net-request-id'])).toEqual([
    'id 1',
    'later id 2',
    'later id 3',
    'later id 4',
  ])
})

test('the client does not use a second request ID for a write that may have taken effect', async () => {
  for (const begin of [() => refusal(503, 'OUTCOME_UNKNOWN'), isSilent]) {
    let asks = 0
    const { client, asked } = clientOf(() =>
      (asks += 1) === 1 ? begin() : refusal(409, 'REQUEST_ID_EXPIRED'),
    )
    await expect(client.ask({ method: 'POST' })).rejects.toMatchObject({
      code: 'REQUEST_ID_EXPIRED',
    })
    expect(new Set(asked.map(({ headers }) => headers['net-request-id']))).toEqual(
      new Set(['id 1']),
    )
  }
})

test('the client gives up after ten seconds if the cluster refuses its writes because their request IDs are too old', async () => {
  const { client, asked } = clientOf(() => refusal(409, 'REQUEST_ID_EXPIRED'))
  await expect(client.ask({ method: 'POST' })).rejects.toMatchObject({
    code: 'REQUEST_ID_EXPIRED',
  })
  expect(asked).toHaveLength(11)
})

test('the client gives up after 20 seconds if there is no leader', async () => {
  const { client, asked } = clientOf(() => refusal(503, 'CLUSTER_NO_LEADER'))
  await expect(client.ask({})).rejects.toMatchObject({ code: 'CLUSTER_NO_LEADER' })
  expect(asked).toHaveLength(21)
})

test('the client reports an unknown outcome even if another member responds later', async () => {
  for (const then of [() => refusal(503, 'CLUSTER_NO_LEADER'), isAway]) {
    let count = 0
    const { client } = clientOf(() =>
      (count += 1) === 2 ? refusal(503, 'OUTCOME_UNKNOWN') : then(),
    )
    await expect(client.ask({ method: 'POST' })).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  }
})

test('the client repeats a write without a request ID only if it was certainly not sent or changed nothing', async () => {
  const { client, asked, origins } = clientOf(({ origin }) =>
    origin === one ? isAway() : answer(200),
  )
  await client.ask(once)
  expect(asked.map(({ headers }) => headers['net-request-id'])).toEqual([undefined, undefined])
  expect(origins()).toEqual([one, two])

  const silent = clientOf(isSilent)
  await expect(silent.client.ask(once)).rejects.toBeInstanceOf(OutcomeUnknownError)
  expect(silent.origins()).toEqual([one])

  const cases = [refusal(503, 'OUTCOME_UNKNOWN'), answer(502, {}), answer(504, {})]
  for (const found of cases) {
    const stopped = clientOf(() => found)
    await expect(stopped.client.ask(once)).rejects.toBeInstanceOf(ApiRefusalError)
    expect(stopped.origins()).toEqual([one])
  }

  const busy = clientOf(({ origin }) =>
    origin === one ? refusal(503, 'CLUSTER_NO_LEADER') : answer(200),
  )
  await busy.client.ask(once)
  expect(busy.origins()).toEqual([one, two])
})

test('the client sends a read to the next member even if the first member may have received it', async () => {
  const { client, origins } = clientOf(({ origin }) => (origin === one ? isSilent() : answer(200)))
  await client.ask({ ...once, changesNothing: true })
  expect(origins()).toEqual([one, two])
})

test('the client sends a read to the next member while the first one is silent, and uses the first response', async () => {
  const silence = Promise.withResolvers<ClusterResponse>()
  const { client, members, origins } = clientOf(
    ({ origin }) => (origin === one ? silence.promise : answer(200)),
    { waits: { hedgeMs: 1 } },
  )
  expect((await client.ask({})).origin).toBe(two)
  expect(origins()).toEqual([one, two])
  expect(members.current).toBe(two)
  silence.reject(new NoResponseError('did not respond', true))
  await expect.poll(() => members.failed).toEqual([one])
})

test('the client also uses the late response of a slow member to a read that it has already sent to the next member', async () => {
  const slow = Promise.withResolvers<ClusterResponse>()
  const { client, members, origins } = clientOf(
    ({ origin }) => {
      if (origin === one) return slow.promise
      slow.resolve(answer(200))
      return new Promise(() => undefined)
    },
    { waits: { hedgeMs: 1 } },
  )
  expect((await client.ask({})).origin).toBe(one)
  expect(origins()).toEqual([one, two])
  expect([members.current, members.failed]).toEqual([one, []])
})

test('the client sends a write, or a read of a member that the caller selected, to only one member at a time', async () => {
  const silence = Promise.withResolvers<ClusterResponse>()
  const { client, asked } = clientOf(
    ({ origin }) => (origin === one ? silence.promise : answer(200)),
    { waits: { hedgeMs: 1 } },
  )
  const write = client.ask({ method: 'POST' })
  const selected = client.ask({ origin: one })
  await client.ask({})
  expect(asked.map(({ origin, request: { method = 'GET' } }) => `${method} ${origin}`)).toEqual([
    `POST ${one}`,
    `GET ${one}`,
    `GET ${one}`,
    `GET ${two}`,
  ])
  silence.resolve(answer(200))
  await Promise.all([write, selected])
})

test('the time limits for the data of a console page are at most 2.5 seconds if a controller does not respond', () => {
  const { trafficAnswerMsMax } = clusterTrafficLimits
  expect(consoleTimeouts.hedgeMs + trafficAnswerMsMax).toBeLessThanOrEqual(2_500)
  expect(OWN_DATA_TIMEOUT_MS).toBeLessThanOrEqual(2_500)
})

test('the client sends the header net-min-index with each request of a session after the first response', async () => {
  let index = 7
  const { client, asked } = clientOf(() => answer(200, {}, { 'net-index': `1:${index}` }))
  await client.ask({})
  index = 5
  await client.ask({ method: 'POST' })
  await client.ask({})
  await client.ask({ showsSession: false })
  expect(asked.map(({ headers }) => headers['net-min-index'])).toEqual([
    undefined,
    '1:7',
    '1:7',
    undefined,
  ])
})

test('the client repeats a request once, without a log position of the old generation, after the cluster was recovered', async () => {
  let generation = 1
  const { client, asked } = clientOf(({ headers }) => {
    const position = { 'net-index': `${generation}:3` }
    const shown = headers['net-min-index']
    if (shown === undefined || shown.startsWith(`${generation}:`)) return answer(200, {}, position)
    return answer(400, { error: { code: 'COULD_NOT_VALIDATE' } }, position)
  })
  await client.ask({})
  generation = 2
  await client.ask({ method: 'POST' })
  expect(asked.map(({ headers }) => headers)).toEqual([
    { 'net-session': 'token' },
    { 'net-session': 'token', 'net-min-index': '1:3', 'net-request-id': 'id 1' },
    { 'net-session': 'token', 'net-min-index': '2:3', 'net-request-id': 'id 1' },
  ])
  const hostile = clientOf(() => {
    generation += 1
    return answer(
      400,
      { error: { code: 'COULD_NOT_VALIDATE' } },
      { 'net-index': `${generation}:3` },
    )
  })
  await expect(hostile.client.ask({})).rejects.toBeInstanceOf(ApiRefusalError)
  await expect(hostile.client.ask({})).rejects.toBeInstanceOf(ApiRefusalError)
  expect(hostile.asked, 'one request, then two').toHaveLength(3)
})

test('the client waits longer for its last member and for each member of a hedged read, but not for a member that the caller selected', async () => {
  const { client, asked } = clientOf(isSilent, { waits: consoleTimeouts })
  await expect(client.ask({ method: 'POST' })).rejects.toBeInstanceOf(UnreachableError)
  expect(asked.splice(0).map(({ timeoutMs }) => timeoutMs)).toEqual([2000, 2000, 20_000])
  await expect(client.ask({})).rejects.toBeInstanceOf(UnreachableError)
  expect(asked.splice(0).map(({ timeoutMs }) => timeoutMs)).toEqual([20_000, 20_000, 20_000])
  await expect(client.ask({ origin: two, timeoutMs: 3000 })).rejects.toBeInstanceOf(
    UnreachableError,
  )
  expect(asked.map(({ origin, timeoutMs }) => [origin, timeoutMs])).toEqual([[two, 3000]])
})

test('the client renews a session at most once for each refused request', async () => {
  const refused: (string | null)[] = []
  const session: SessionTokenSource = {
    token: () => 'old',
    renewed: (token, { code }) => {
      refused.push(token)
      return Promise.resolve(code === 'UNAUTHORIZED' ? 'eyNew' : null)
    },
  }
  const { client, asked } = clientOf(
    ({ headers }) =>
      headers['authorization'] === 'Bearer eyNew' ? answer(200) : refusal(401, 'UNAUTHORIZED'),
    { session },
  )
  await client.ask({})
  expect(asked.map(({ headers }) => headers['net-session'])).toEqual(['old', undefined])
  const never = clientOf(() => refusal(401, 'UNAUTHORIZED'), { session })
  await expect(never.client.ask({})).rejects.toMatchObject({ status: 401 })
  expect(never.asked).toHaveLength(2)
  await expect(never.client.ask({ renewsSession: false })).rejects.toMatchObject({ status: 401 })
  await expect(never.client.ask({ showsSession: false })).rejects.toMatchObject({ status: 401 })
  expect(refused).toEqual(['old', 'old'])
})

test('the client reads the error code and message from any error response', () => {
  const cause = { field: 'name', reason: 'duplicate value' }
  const error = { code: 'COULD_NOT_VALIDATE', message: 'The request is invalid', cause }
  expect(new ApiRefusalError(400, { error })).toMatchObject({ code: error.code, fault: cause })
  const oauth = { error: 'invalid_grant', error_description: 'it has ended' }
  expect(new ApiRefusalError(400, oauth)).toMatchObject({
    code: 'invalid_grant',
    message: 'it has ended',
  })
  for (const odd of [null, 7, '<html>', [], {}, { error: null }, { error: { code: 7 } }]) {
    expect(new ApiRefusalError(502, odd)).toMatchObject({
      code: '',
      message: 'HTTP 502',
      fault: null,
    })
  }
})

test('the client orders log positions by generation, then by index', () => {
  expect(laterLogPosition('1:9', '2:1')).toBe('2:1')
  expect(laterLogPosition('2:1', '1:9')).toBe('2:1')
  expect(laterLogPosition('1:9', '1:10')).toBe('1:10')
  expect(laterLogPosition(null, 'no position')).toBeNull()
})

test('the client creates UUIDv7 request IDs that begin with their creation time', () => {
  expect(newRequestId(0x0123_4567_89ab, new Uint8Array(16).fill(255))).toBe(
    '01234567-89ab-7fff-bfff-ffffffffffff',
  )
})
