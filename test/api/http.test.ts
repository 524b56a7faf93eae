import { once } from 'node:events'
import { request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, test } from 'vitest'
import { createApi } from '../../src/api/server.ts'
import { CallerOf, management } from './support/caller.ts'
import { startController } from './support/controller.ts'
import { controllerForFile } from './support/for-file.ts'

// Behavior that only a real connection shows.

const { controller } = await controllerForFile({ bodyBytesMax: 10_000 })
await controller.app.listen({ host: '127.0.0.1', port: 0 })
const { port } = controller.app.server.address() as AddressInfo
const token = controller.openSession('admin-id')

interface Seen {
  readonly status: number
  readonly connection: string | undefined
  readonly code: string | undefined
}

/**
 * Sends a body in chunks, without its length. An early response may end the connection before the
 * body is sent.
 */
function sendChunks(count: number, headers: Record<string, string>): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const sent = request({
      host: '127.0.0.1',
      port,
      method: 'POST',
      path: `${management}/services`,
      headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked', ...headers },
    })
    let isAnswered = false
    sent.on('response', (response) => {
      isAnswered = true
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const body = JSON.parse(Buffer.concat(chunks).toString()) as { error?: { code: string } }
        resolve({
          status: response.statusCode ?? 0,
          connection: response.headers.connection,
          code: body.error?.code,
        })
      })
    })
    sent.on('error', (error) => {
      if (!isAnswered) reject(error)
    })
    for (let chunk = 0; chunk < count; chunk += 1) sent.write('x'.repeat(1000))
    sent.end()
  })
}

test('a chunked body over the size limit gets the response 413 with OpenZiti’s error envelope, and the connection is closed', async () => {
  const seen = await sendChunks(64, { 'net-session': token })
  expect(seen).toEqual({ status: 413, connection: 'close', code: 'REQUEST_ENTITY_TOO_LARGE' })
})

test('a chunked body of a caller without a session is refused before the controller has read it completely', async () => {
  const seen = await sendChunks(64, {})
  expect(seen).toEqual({ status: 401, connection: 'close', code: 'UNAUTHORIZED' })
})

test('a malformed request gets the response 400 with OpenZiti’s error envelope, and the connection is closed', async () => {
  const socket = connect(port, '127.0.0.1')
  socket.write('HELLO\r\n\r\n')
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await once(socket, 'close')
  expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
  const body = JSON.parse(text.split('\r\n\r\n')[1] ?? '') as { error: { code: string } }
  expect(body.error.code).toBe('COULD_NOT_PARSE_BODY')
})

test('request headers over the size limit get the response 431', async () => {
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET /version HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(36_000)}\r\n\r\n`)
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await once(socket, 'close')
  expect(text).toMatch(/^HTTP\/1\.1 431 /)
})

test('a request that exceeds the timeout gets the error TIMEOUT, or OUTCOME_UNKNOWN if its write was already proposed', async () => {
  // Even on a busy machine, the write is proposed before this timeout.
  const slow = await startController({ handlerTimeoutMs: 2000 })
  const root = new CallerOf(slow)
  root.token = slow.openSession('admin-id')
  const never = new Promise<never>(() => undefined)
  slow.cluster.readIndex = () => never
  slow.cluster.propose = () => never
  try {
    const [read, write] = await Promise.all([
      root.get(`${management}/services?consistency=linearizable`),
      root.call('POST', `${management}/services`, { name: 'slow', encryptionRequired: true }),
    ])
    expect([read.status, read.body.error?.code]).toEqual([503, 'TIMEOUT'])
    expect([write.status, write.body.error?.code]).toEqual([503, 'OUTCOME_UNKNOWN'])
  } finally {
    await slow.close()
  }
})

test('a listener serves only the APIs in its configuration', async () => {
  const api = createApi(controller.parts)
  const app = api.listener({ apis: ['client', 'host'], https: null })
  try {
    expect((await app.inject('/edge/client/v1/version')).statusCode).toBe(200)
    expect((await app.inject('/health-checks')).statusCode).toBe(200)
    expect((await app.inject('/edge/management/v1/version')).statusCode).toBe(404)
    expect((await app.inject('/fabric/v1/version')).statusCode).toBe(404)
  } finally {
    await app.close()
  }
})

test('the API does not start if a route declares no permission', async () => {
  const app = createApi(controller.parts).listener({ apis: ['client'], https: null })
  try {
    expect(() => app.get('/open', () => 'open')).toThrow(/declares no permission/)
  } finally {
    await app.close()
  }
})
