import { expect, test } from 'vitest'
import { client, management } from '../api/support/caller.ts'
import { controllerWithProvider } from '../api/support/external-jwt.ts'
import { user } from '../api/support/controller.ts'
import { listenerBefore, textOf } from './support/listener.ts'

// The attack: somebody is behind a proxy that filters requests by their heads, or shares a
// connection to the controller with others through the proxy. If proxy and controller parse a head
// differently, the proxy sees one request and the controller another one, or two. Also, the
// controller might accept from everyone a header that only a proxy should send.

const withProvider = await controllerWithProvider()
const { controller, provider } = withProvider
const { connect } = await listenerBefore(withProvider)

interface Answer {
  readonly status: number
  readonly text: string
}

/** All responses to bytes that are written together on a new connection. */
async function answersTo(written: string): Promise<Answer[]> {
  const socket = await connect()
  socket.write(Buffer.from(written, 'latin1'))
  const text = await textOf(socket)
  return text
    .split(/^HTTP\/1\.1 /m)
    .slice(1)
    .map((one) => ({ status: Number(one.slice(0, 3)), text: one }))
}

/** @param head header lines, sent unchanged. */
const request = (line: string, head: readonly string[], body = ''): string =>
  [`${line} HTTP/1.1`, 'host: localhost', ...head, '', body].join('\r\n')

const bodyHead = (body: string): string[] => [
  'content-type: application/json',
  `content-length: ${Buffer.byteLength(body)}`,
]

async function only(written: string): Promise<Answer> {
  const [answer, ...more] = await answersTo(written)
  expect(more).toEqual([])
  if (answer === undefined) throw new Error('an answer came')
  return answer
}

const whoIs = (head: readonly string[]): Promise<Answer> =>
  only(request(`GET ${client}/current-identity`, [...head, 'connection: close']))

const alice = controller.openSession('alice-id')
const admin = controller.openSession('admin-id')

test('a session token is accepted under either name of its header or under both, in capital or small letters', async () => {
  for (const head of [
    [`net-session: ${alice}`],
    [`ZT-Session: ${alice}`],
    [`net-session: ${alice}`, `zt-session: ${alice}`],
  ]) {
    const answer = await whoIs(head)
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('"alice-id"')])
  }
})

test('different session tokens under the two header names in one request are refused, in either order, and even if one of them is empty', async () => {
  for (const head of [
    [`net-session: ${alice}`, `zt-session: ${admin}`],
    [`zt-session: ${admin}`, `net-session: ${alice}`],
    [`net-session: ${alice}`, 'zt-session:'],
    ['net-session:', `zt-session: ${alice}`],
  ]) {
    expect((await whoIs(head)).status, head.join()).toBe(401)
  }
})

test('a session header that is repeated is refused, so that no value takes precedence', async () => {
  for (const head of [
    [`zt-session: ${alice}`, `zt-session: ${admin}`],
    [`zt-session: ${alice}`, `ZT-SESSION: ${admin}`],
    [`net-session: ${alice}`, `net-session: ${alice}`],
    [`zt-session: ${alice}, ${admin}`],
    [`zt-session: ${alice} ${admin}`],
  ]) {
    expect((await whoIs(head)).status, head.join()).toBe(401)
  }
})

test('a header with a name similar to the session header is ignored', async () => {
  for (const name of ['zt_session', 'net_session', 'net.session', 'x-net-session', 'cookie']) {
    expect((await whoIs([`${name}: ${alice}`])).status, name).toBe(401)
    // The invalid header does not affect the valid one either.
    const other = await whoIs([`${name}: ${admin}`, `net-session: ${alice}`])
    expect([other.status, other.text], name).toEqual([200, expect.stringContaining('"alice-id"')])
  }
})

test('a request whose end is ambiguous is refused, and the connection is closed', async () => {
  const ownHead = [`net-session: ${alice}`, 'connection: close']
  const hidden = request(`DELETE ${client}/current-api-session`, ownHead)
  const chunked = `0\r\n\r\n${hidden}`
  const post = (head: readonly string[], body: string): string =>
    request(`POST ${client}/authenticate?method=password`, [`net-session: ${alice}`, ...head], body)
  for (const [head, body] of [
    [['content-length: 5', 'transfer-encoding: chunked'], chunked],
    [['transfer-encoding: chunked', 'content-length: 5'], chunked],
    [['Transfer-Encoding: chunked', `Content-Length: ${chunked.length}`], chunked],
    [['transfer-encoding: chunked', 'transfer-encoding: identity'], chunked],
    [['transfer-encoding: xchunked'], chunked],
    [['transfer-encoding: chunked, identity'], chunked],
    [['transfer-encoding:\r\n chunked'], chunked],
    [['transfer-encoding : chunked'], chunked],
    [['content-length: 0', `content-length: ${hidden.length}`], hidden],
    [['content-length: 0, 0'], hidden],
    [['content-length: +0'], hidden],
    [['content-length : 0'], hidden],
    [['transfer-encoding: chunked'], `0x0\r\n\r\n${hidden}`],
    [['transfer-encoding: chunked'], `1;\n\r\nx\r\n0\r\n\r\n${hidden}`],
  ] as const) {
    const answer = await only(post(head, body))
    expect(answer.status, JSON.stringify([head, body.slice(0, 12)])).toBe(400)
  }
  expect((await whoIs([`net-session: ${alice}`])).status).toBe(200)
})

test('a request head with folded lines, stray line ends, blanks before a colon or NUL bytes is refused', async () => {
  for (const head of [
    [`net-session: ${alice}`, ` ${admin}`],
    ['net-session:', `\t${alice}`],
    [`net-session : ${alice}`],
    [` net-session: ${alice}`],
    [`x: y\nnet-session: ${alice}`],
    [`x: y\rnet-session: ${alice}`],
    [`x: y\0`, `net-session: ${alice}`],
  ]) {
    expect((await whoIs(head)).status, JSON.stringify(head)).toBe(400)
  }
})

test('a request with two Host headers is refused', async () => {
  const answer = await whoIs(['host: another', `net-session: ${alice}`])
  expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('"Host"')])
})

test('bytes after a body are not parsed as part of the head', async () => {
  const body = `2\r\n{}\r\n0\r\nnet-session: ${admin}\r\n\r\n`
  const head = ['content-type: application/json', 'transfer-encoding: chunked', 'connection: close']
  const answer = await only(
    request(`POST ${management}/services`, [...head, 'trailer: net-session'], body),
  )
  expect(answer.status).toBe(401)
})

/** Headers with which proxies inform servers about caller, target and origin. */
const told = (who: string): string[] => [
  `x-forwarded-user: ${who}`,
  `x-remote-user: ${who}`,
  `remote-user: ${who}`,
  `x-authenticated-userid: ${who}`,
  `x-forwarded-by: ctrl1`,
  `net-forwarded-by: ctrl1`,
  `x-actor: ${who}`,
  'x-edge-router-proxy-request: 1',
  `x-original-url: ${client}/version`,
  `x-rewrite-url: ${client}/version`,
  'x-http-method-override: GET',
]

test('headers that a proxy usually adds change neither the caller nor the requested path', async () => {
  expect((await whoIs(told('admin-id'))).status).toBe(401)
  const own = await whoIs([...told('admin-id'), `net-session: ${alice}`])
  expect([own.status, own.text]).toEqual([200, expect.stringContaining('"alice-id"')])
  const services = ['x-http-method-override: DELETE', `net-session: ${admin}`]
  const kept = await only(
    request(`GET ${management}/identities/alice-id`, [...services, 'connection: close']),
  )
  expect([kept.status, controller.state.get('identity', 'alice-id')?.id]).toEqual([200, 'alice-id'])
})

test('headers that a proxy usually adds do not change the source address to which a wrong guess is attributed', async () => {
  const body = JSON.stringify({ username: user.username, password: 'a guess that is wrong' })
  const statuses: number[] = []
  for (let at = 0; at <= controller.parts.limits.logInFailuresMax; at += 1) {
    const address = `203.0.113.${at}`
    const answer = await only(
      request(
        `POST ${client}/authenticate?method=password`,
        [
          ...bodyHead(body),
          ...['x-forwarded-for', 'x-real-ip', 'x-client-ip', 'true-client-ip'].map(
            (name) => `${name}: ${address}`,
          ),
          `forwarded: for=${address}`,
          'connection: close',
        ],
        body,
      ),
    )
    statuses.push(answer.status)
  }
  expect(statuses.slice(0, -1)).toEqual(statuses.slice(0, -1).map(() => 401))
  expect(statuses.at(-1)).toBe(429)
})

test('two tokens of different identities in one request are refused', async () => {
  const bearer = async (who: string): Promise<string> =>
    `Authorization: Bearer ${await provider.token(who)}`
  const logIn = (head: readonly string[]): Promise<Answer> =>
    only(
      request(`POST ${client}/authenticate?method=ext-jwt`, [
        ...head,
        'content-length: 0',
        'connection: close',
      ]),
    )
  const two = [await bearer('alice-id'), await bearer('admin-id')]
  for (const head of [two, two.toReversed()]) expect((await logIn(head)).status).toBe(401)
  expect((await logIn([await bearer('alice-id')])).status).toBe(200)
  expect((await logIn([await bearer('alice-id'), await bearer('alice-id')])).status).toBe(200)
  expect((await logIn(['authorization: Basic YTpi', await bearer('alice-id')])).status).toBe(200)
})

test('a bearer token of another identity is ignored if the request also has a session token', async () => {
  const { signerId, newPolicy, patch } = withProvider
  const secondary = { requireTotp: false, requireExtJwtSigner: signerId }
  await patch('identities', 'alice-id', { authPolicyId: await newPolicy('two', { secondary }) })
  const bearer = async (who: string): Promise<string> =>
    `authorization: Bearer ${await provider.token(who)}`
  const session = `net-session: ${alice}`
  expect((await whoIs([session, await bearer('admin-id')])).status).toBe(401)
  const both = await whoIs([session, await bearer('admin-id'), await bearer('alice-id')])
  expect([both.status, both.text]).toEqual([200, expect.stringContaining('"alice-id"')])
  await patch('identities', 'alice-id', { authPolicyId: 'default' })
})
