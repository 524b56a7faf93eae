import { get, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { afterAll, expect, test } from 'vitest'

import { eventLimits } from '../../src/events/limits.ts'
import { fabric } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { eventually } from '../support/eventually.ts'

// The attack: somebody opens event streams and reads nothing, so that events accumulate for each
// stream.

const { controller, sessionOf } = await controllerForFile()
const url = await controller.app.listen({ host: '127.0.0.1', port: 0 })
const opened: IncomingMessage[] = []
const sockets = new Set<Socket>()
controller.app.server.on('connection', (socket: Socket) => sockets.add(socket))
afterAll(() => {
  for (const one of opened) one.destroy()
})

function open(token: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = { headers: { 'net-session': token }, agent: false } as const
    get(`${url}${fabric}/events`, options, (answer) => {
      answer.on('error', () => undefined)
      opened.push(answer)
      resolve(answer)
    }).on('error', reject)
  })
}

/** Emits more than the buffers of the operating system hold. */
function emitMuch(): void {
  const text = 'x'.repeat(100_000)
  for (let count = 0; count < 300; count += 1) {
    const fields = (): object => ({ text })
    const event = { namespace: 'router', atMs: 1, weight: text.length, fields } as const
    controller.events.bus.emitLive(event as Parameters<typeof controller.events.bus.emitLive>[0])
  }
}

test('a caller can open a limited number of event streams at a time', async () => {
  const token = sessionOf('admin-id').token ?? ''
  const statuses: (number | undefined)[] = []
  for (let count = 0; count <= eventLimits.eventStreamsPerCallerMax; count += 1) {
    statuses.push((await open(token)).statusCode)
  }
  expect(statuses.filter((status) => status === 200)).toHaveLength(
    eventLimits.eventStreamsPerCallerMax,
  )
  expect(statuses.at(-1)).toBe(429)
  for (const one of opened.splice(0)) one.destroy()
  await eventually(() => expect(connections()).resolves.toBe(0))
})

test('a client that does not read its events occupies little memory, and is disconnected', async () => {
  const answer = await open(sessionOf('admin-id').token ?? '')
  answer.pause()
  emitMuch()
  // 30 MB of events have been emitted; everything that the buffers of the operating system do not
  // hold would wait here.
  const unsent = (): number => Math.max(...[...sockets].map((one) => one.writableLength))
  await eventually(() => expect(unsent()).toBeGreaterThan(0))
  expect(unsent()).toBeLessThan(1_000_000)
  await eventually(
    async () => {
      controller.clock.advance(eventLimits.eventStallMs + 1)
      expect(await connections()).toBe(0)
    },
    { interval: 1500 },
  )
})

function connections(): Promise<number> {
  return new Promise((resolve, reject) => {
    controller.app.server.getConnections((error, count) => {
      if (error === null) resolve(count)
      else reject(error)
    })
  })
}
