import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'

// Memory for large bodies on real connections: it is released when a caller disconnects or is
// refused.

const { controller } = await controllerForFile({
  largeBodyBytes: 1000,
  largeBodiesBytesMax: 6000,
  largeBodyWaitMs: 300,
})
await controller.app.listen({ host: '127.0.0.1', port: 0 })
const { port } = controller.app.server.address() as AddressInfo
const token = controller.openSession('admin-id')

async function create(name: string, characters: number): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}${management}/services`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'net-session': token },
    body: JSON.stringify({ name, encryptionRequired: true, tags: { of: 'x'.repeat(characters) } }),
  })
  await answer.text()
  return answer.status
}

/** Announces a body and sends no part of it. */
async function beginUpload(bytes: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(
    `POST ${management}/services HTTP/1.1\r\nhost: x\r\nnet-session: ${token}\r\n` +
      `content-type: application/json\r\ncontent-length: ${bytes}\r\n\r\n`,
  )
  return socket
}

test('large bodies that arrive one after the other release their memory, whether their requests succeed or are refused', async () => {
  for (let n = 0; n < 10; n += 1) expect(await create(`taken-${n}`, 4000)).toBe(201)
  for (let n = 0; n < 10; n += 1) expect(await create('taken-0', 4000)).toBe(400)
})

test('while large bodies use up their total limit, another large body waits or is refused, and small bodies are accepted; a client that disconnects frees its part of the limit', async () => {
  const socket = await beginUpload(5000)
  await expect.poll(() => create('waits', 4000)).toBe(429)
  expect(await create('small', 10)).toBe(201)
  socket.destroy()
  await expect.poll(() => create('taken', 4000)).toBe(201)
})

test('a waiting large body is accepted as soon as it fits the total limit', async () => {
  const socket = await beginUpload(5000)
  await expect.poll(() => create('refused', 4000)).toBe(429)
  const waiting = create('waited', 4000)
  socket.destroy()
  expect(await waiting).toBe(201)
})
