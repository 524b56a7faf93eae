import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { PATIENCE_MS } from '../support/patience.ts'

// Behavior at the level of bytes, below the HTTP of clients.

const { controller } = await controllerForFile({
  headersTimeoutMs: 1500,
  timeoutCheckMs: 50,
  // A busy machine may need this long to send the rest of a request.
  lingerMs: PATIENCE_MS,
  lingerBytesMax: 4 * 1024 * 1024,
})
await controller.app.listen({ host: '127.0.0.1', port: 0 })
const { port } = controller.app.server.address() as AddressInfo
const token = controller.openSession('admin-id')

interface Seen {
  readonly status: number
  readonly headers: string
  readonly code: string | undefined
}

function seen(text: string): Seen {
  const [head = '', body = ''] = text.split('\r\n\r\n')
  const { error } = (body === '' ? {} : JSON.parse(body)) as { error?: { code: string } }
  return { status: Number(head.split(' ')[1]), headers: head.toLowerCase(), code: error?.code }
}

async function untilClosed(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await once(socket, 'close')
  return text
}

/** Sends the head of a request, and then the rest if there is one. @returns the response. */
async function ask(head: string, rest: string | Buffer = ''): Promise<Seen> {
  const socket = connect(port, '127.0.0.1')
  socket.write(head)
  if (rest.length > 0) socket.write(rest)
  return seen(await untilClosed(socket))
}

const close = 'connection: close\r\n\r\n'

test('the response with the version forbids caching and content sniffing, and requires TLS', async () => {
  const { headers } = await ask(`GET /version HTTP/1.1\r\nhost: x\r\n${close}`)
  expect(headers).toContain('cache-control: no-store')
  expect(headers).toContain('x-content-type-options: nosniff')
  expect(headers).toContain('strict-transport-security: max-age=31536000')
})

test('a request without a Host header is refused with an error envelope', async () => {
  expect(await ask(`GET /version HTTP/1.1\r\n${close}`)).toMatchObject({
    status: 400,
    code: 'COULD_NOT_VALIDATE',
  })
})

test('a request with an unsupported Expect header is refused with an error envelope', async () => {
  const answer = await ask(`GET /version HTTP/1.1\r\nhost: x\r\nexpect: a-miracle\r\n${close}`)
  expect(answer).toMatchObject({ status: 417, code: 'EXPECTATION_FAILED' })
})

test('an OPTIONS request that is not a preflight is refused with an error envelope', async () => {
  const answer = await ask(`OPTIONS * HTTP/1.1\r\nhost: x\r\n${close}`)
  expect([answer.status, answer.code]).toEqual([400, 'COULD_NOT_VALIDATE'])
})

const create =
  `POST ${management}/services HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n` +
  'expect: 100-continue\r\n'

test('a caller without a session is refused before it has sent its body', async () => {
  const answer = await ask(`${create}content-length: 50\r\n${close}`)
  expect(answer).toMatchObject({ status: 401, code: 'UNAUTHORIZED' })
})

test('a caller that may send a body gets the status 100 Continue', async () => {
  const body = JSON.stringify({ name: 'asked-for', encryptionRequired: true })
  const socket = connect(port, '127.0.0.1')
  socket.write(`${create}net-session: ${token}\r\ncontent-length: ${body.length}\r\n${close}`)
  const [first] = (await once(socket, 'data')) as [Buffer]
  expect(first.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n')
  socket.write(body)
  expect(seen(await untilClosed(socket)).status).toBe(201)
})

test.for([
  ['401', `POST ${management}/services`, 'UNAUTHORIZED'],
  ['404', 'POST /edge/management/v1/nowhere', 'NOT_FOUND'],
  ['413', `POST ${management}/services`, 'REQUEST_ENTITY_TOO_LARGE'],
] as const)(
  'a response with status %s reaches a client that is still sending its body',
  async ([status, what, code]) => {
    const bytes = status === '413' ? 3_000_000 : 900_000
    const socket = connect(port, '127.0.0.1')
    socket.write(
      `${what} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n` +
        `content-length: ${bytes}\r\n\r\n`,
    )
    const answer = untilClosed(socket)
    // The second half is sent when the response has arrived; if the connection were closed, this
    // write would reset it.
    socket.write(Buffer.alloc(bytes / 2, 0x20))
    await once(socket, 'data')
    socket.write(Buffer.alloc(bytes / 2, 0x20))
    expect(seen(await answer)).toMatchObject({ status: Number(status), code })
  },
)

test('a connection without complete headers is closed after the timeout', async () => {
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /version HTTP/1.1\r\n')
  const fromMs = performance.now()
  expect(seen(await untilClosed(socket))).toMatchObject({ status: 408 })
  const tookMs = performance.now() - fromMs
  expect(tookMs).toBeGreaterThan(1400)
})

test('a refused connection is closed even if the client does not close its side', async () => {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.write('HELLO\r\n\r\n')
  socket.on('data', () => undefined)
  await once(socket, 'end')
  await expect
    .poll(
      () =>
        new Promise((resolve) => {
          controller.app.server.getConnections((_error, count) => resolve(count))
        }),
    )
    .toBe(0)
  socket.destroy()
})
