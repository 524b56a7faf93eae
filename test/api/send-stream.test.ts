import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, expect, test } from 'vitest'

import { sendStream } from '../../src/api/http/transport/send-stream.ts'
import { TextToByteStream } from '../../src/events/streams/text-to-byte-stream.ts'
import type { ByteStream } from '../../src/ports/byte-stream.ts'
import { eventually } from '../support/eventually.ts'

// Goal: when a stream ends, by itself, by its client or by a timeout, its creator is informed
// exactly once.

const STALL_MS = 300
const PIECE = Buffer.alloc(64 * 1024, 'x')

let stream: ByteStream = { chunks: new TextToByteStream(1, nobody()) }
const sent: Promise<string>[] = []
const server = createServer((_request, response) => {
  const told = sendStream(response, stream, STALL_MS).then(
    () => 'over',
    (error: unknown) => (error as Error).message,
  )
  sent.push(told)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

function nobody() {
  return { onTaken: () => undefined, onReturned: () => undefined }
}

async function ask(given: ByteStream): Promise<IncomingMessage> {
  stream = given
  const { port } = server.address() as AddressInfo
  const request = get({ host: '127.0.0.1', port, agent: false })
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  answer.on('error', () => undefined)
  return answer
}

async function textOf(answer: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of answer) text += String(piece)
  return text
}

/** A stream without end that counts the requested pieces. */
class Endless implements ByteStream {
  asked = 0
  returned = 0
  readonly giveUp?: AbortSignal
  readonly chunks = {
    [Symbol.asyncIterator]: (): AsyncIterator<Uint8Array> => ({
      next: () => {
        this.asked += 1
        return Promise.resolve({ done: false, value: PIECE })
      },
      return: () => {
        this.returned += 1
        return Promise.resolve({ done: true, value: undefined })
      },
    }),
  }

  constructor(giveUp?: AbortSignal) {
    if (giveUp !== undefined) this.giveUp = giveUp
  }
}

test('the chunks of a stream arrive in order, followed by the end of the stream', async () => {
  const told: string[] = []
  const pipe = new TextToByteStream(1024, {
    onTaken: () => told.push('taken'),
    onReturned: () => told.push('returned'),
  })
  pipe.write('one, ')
  const answer = await ask({ chunks: pipe })
  const text = textOf(answer)
  pipe.write('two, ')
  pipe.write('three')
  pipe.end()
  pipe.write(', and nothing after the end')
  await expect(text).resolves.toBe('one, two, three')
  await expect(sent.at(-1)).resolves.toBe('over')
  expect(told.filter((one) => one === 'returned')).toHaveLength(1)
})

test('an idle stream closes when its client disconnects', async () => {
  let returned = 0
  const parts = { ...nobody(), onReturned: () => (returned += 1) }
  const answer = await ask({ chunks: new TextToByteStream(1024, parts) })
  expect(answer.statusCode).toBe(200)
  expect(returned).toBe(0)
  answer.destroy()
  await eventually(() => expect(returned).toBe(1))
  await expect(sent.at(-1)).resolves.toBe('over')
})

test('the source of a stream produces data only as fast as the client reads, and a stalled client is disconnected', async () => {
  const endless = new Endless()
  const answer = await ask(endless)
  answer.pause()
  await eventually(() => expect(endless.returned).toBe(1))
  // 64 MiB would be 1024 pieces, but the operating system buffers only a few.
  expect(endless.asked).toBeLessThan(1024)
  await expect(sent.at(-1)).resolves.toBe('over')
})

test('a stream whose source detects slow readers itself is disconnected only when the source aborts it', async () => {
  const patience = new AbortController()
  const endless = new Endless(patience.signal)
  const answer = await ask(endless)
  answer.pause()
  await new Promise((resolve) => setTimeout(resolve, 3 * STALL_MS))
  expect(endless.returned).toBe(0)
  patience.abort()
  await eventually(() => expect(endless.returned).toBe(1))
  expect(endless.asked).toBeLessThan(1024)
})

test('an error of the source resets the stream’s connection, so that the client does not mistake the error for the end of the stream', async () => {
  async function* failing(): AsyncGenerator<Uint8Array> {
    yield await Promise.resolve(PIECE)
    throw new Error('the disk is gone')
  }
  const answer = await ask({ chunks: failing() })
  await expect(textOf(answer)).rejects.toThrow('aborted')
  await expect(sent.at(-1)).resolves.toBe('the disk is gone')
})

test('the writer of a stream limits the buffered data, and resumes once the buffer is empty', async () => {
  let taken = 0
  const pipe = new TextToByteStream(10, { ...nobody(), onTaken: () => (taken += 1) })
  expect(pipe.write('12345')).toBe(true)
  expect(pipe.write('67890')).toBe(false)
  expect(taken).toBe(0)
  const { value } = await pipe.next()
  expect(Buffer.from(value ?? []).toString()).toBe('1234567890')
  expect(taken).toBe(1)
  expect(pipe.write('12345')).toBe(true)
})
