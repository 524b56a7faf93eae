import { once } from 'node:events'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { problemTypes } from '../../src/lib/problems.ts'
import { RequestAuthenticator } from '../../src/auth/sessions/request-authenticator.ts'
import { client, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { listenerBefore } from './support/listener.ts'

// The attack: an attacker with an ordinary session sends so many requests at the same time that
// everyone else waits until the last one is answered.

/** Longer than the time limit of a test. */
const HANDLER_TIMEOUT_MS = 600_000
const forFile = await controllerForFile({
  processorBurstMs: 1,
  handlerTimeoutMs: HANDLER_TIMEOUT_MS,
})
const { root, sessionOf } = forFile
const { connect } = await listenerBefore(forFile)
const flooder = sessionOf('alice-id')
const path = `${client}/services?limit=100`
/** With this limit, every request of a caller waits, except the first one. */
const alwaysWaiting = await controllerForFile({
  processorBurstMs: -1,
  handlerTimeoutMs: HANDLER_TIMEOUT_MS,
})
const { connect: connectWaiting } = await listenerBefore(alwaysWaiting)
const waiter = alwaysWaiting.sessionOf('alice-id')

test('a request of one caller is answered before the last quarter of a flood from another caller', async () => {
  // Uses up the flooding client's free quota.
  for (let at = 0; at < 100; at += 1) await flooder.get(path)
  const answered: string[] = []
  const flood = Array.from({ length: 400 }, async () => {
    await flooder.get(path)
    answered.push('flooder')
  })
  await root.get(`${management}/services`)
  const before = answered.length
  await Promise.all(flood)
  expect(answered.length).toBe(400)
  // If callers did not take turns, all 400 requests of the flood would be answered first. If they
  // do, the number depends on how busy the machine is.
  expect(before).toBeLessThan(300)
})

test('a request of one caller is processed before most requests that another caller sends over many connections', async () => {
  const connections = await Promise.all(Array.from({ length: 100 }, connect))
  const own = await connect()
  // The first request determines the caller of each connection, and the flooding client has used up
  // its share.
  for (const socket of connections) await answered(socket, flooder.token)
  await answered(own, root.token)
  const admit = vi.spyOn(RequestAuthenticator.prototype, 'admit')
  const all = connections.map((socket) => answered(socket, flooder.token))
  await answered(own, root.token)
  await Promise.all(all)
  const judged = admit.mock.calls.map(([{ sessionToken }]) => sessionToken)
  admit.mockRestore()
  expect(judged).toHaveLength(101)
  // If callers did not take turns, this request would be the last one.
  expect(judged.indexOf(root.token ?? '')).toBeLessThan(50)
})

test('a request that waits longer than the response timeout fails with TIMEOUT', async () => {
  const { controller } = alwaysWaiting
  const socket = await connectWaiting()
  expect(await answered(socket, waiter.token)).toBe(200)
  await waiter.get(path)
  const { processor } = controller.parts
  const run = processor.run.bind(processor)
  const spy = vi.spyOn(processor, 'run').mockImplementation((caller, task) => {
    const hasToWait = run(caller, task)
    if (hasToWait) queueMicrotask(() => controller.clock.advance(HANDLER_TIMEOUT_MS + 1))
    return hasToWait
  })
  const status = await answered(socket, waiter.token)
  spy.mockRestore()
  expect(status).toBe(problemTypes.TIMEOUT.http)
})

describe('the operation of a request that waited has only the rest of the response timeout', () => {
  const { controller } = alwaysWaiting
  const REST_MS = 20
  const linearizable = `${client}/services?consistency=linearizable`
  const { readIndex } = controller.cluster

  beforeEach(() => {
    controller.cluster.readIndex = () => new Promise<never>(() => undefined)
  })
  afterEach(() => {
    controller.cluster.readIndex = readIndex
    vi.restoreAllMocks()
  })

  const passTime = (): void => controller.clock.advance(HANDLER_TIMEOUT_MS - REST_MS)

  /** Advances the clock nearly to the response timeout whenever a task waits for processor time. */
  function passTimeWhileWaiting(): void {
    const { processor } = controller.parts
    const run = processor.run.bind(processor)
    vi.spyOn(processor, 'run').mockImplementation((caller, task) => {
      const hasToWait = run(caller, task)
      if (hasToWait) queueMicrotask(passTime)
      return hasToWait
    })
  }

  test.each([
    ['before its admission check', true],
    ['after its admission check', false],
  ])('for processor time %s', async (_when, isKnown) => {
    const socket = await connectWaiting()
    // The controller knows the caller of a connection from the previous request.
    if (isKnown) expect(await answered(socket, waiter.token)).toBe(200)
    await waiter.get(path)
    passTimeWhileWaiting()
    const status = await answered(socket, waiter.token, linearizable)
    expect(status).toBe(problemTypes.TIMEOUT.http)
  })

  test('for its admission', async () => {
    // The sessions of the other tests have expired, because those tests advance the clock.
    const { token } = alwaysWaiting.sessionOf('alice-id')
    const { admit } = RequestAuthenticator.prototype
    vi.spyOn(RequestAuthenticator.prototype, 'admit').mockImplementation(async function (
      this: RequestAuthenticator,
      ...input
    ) {
      await Promise.resolve()
      passTime()
      return await admit.apply(this, input)
    })
    const status = await answered(await connectWaiting(), token, linearizable)
    expect(status).toBe(problemTypes.TIMEOUT.http)
  })
})

/** Sends a request and waits for its answer. @returns the status of the answer. */
async function answered(
  socket: TLSSocket,
  token: string | null,
  path = `${client}/services?limit=100`,
): Promise<number> {
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nzt-session: ${token ?? ''}\r\n\r\n`)
  let text = ''
  for (;;) {
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    text += chunk.toString('latin1')
    const [head = '', body] = text.split('\r\n\r\n')
    const length = /content-length: (\d+)/i.exec(head)?.[1]
    if (body !== undefined && length !== undefined && body.length >= Number(length)) {
      return Number(head.split(' ')[1])
    }
  }
}
