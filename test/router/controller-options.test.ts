import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { InspectAnswerSchema, InspectRequestSchema } from '../../proto/gen/router_pb.ts'
import { askWithoutReading } from './peer-router.ts'
import { eventually, type ScriptedController, TestNetwork } from './support.ts'

// Goal: each option of the channels to controllers has its documented effect, in `ctrl` and in
// `ctrl.options`. Method: a real router with the option; the test plays its controllers.

let network: TestNetwork
let controller: ScriptedController
const closing: (() => unknown)[] = []
beforeEach(async () => {
  network = await TestNetwork.create()
  controller = await network.controller('a')
})
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
  await network.close()
})

async function start(ctrl: string, more = '', others: readonly string[] = []): Promise<void> {
  await network.running([controller.address, ...others], more, ctrl)
  await eventually(() => controller.isConnected).toBe(true)
}

const reasonsOf = (message: string) => network.logged(message).map(({ fields }) => fields['reason'])
const shortest = (times: readonly number[]): number =>
  Math.min(...times.slice(1).map((at, k) => at - (times[k] ?? 0)))

test.each(['bind: 127.0.0.2', 'options: {bind: 127.0.0.2}'])(
  'a router dials controllers from the local address in %s',
  async (ctrl) => {
    await start(ctrl)
    expect(controller.remoteAddresses).toEqual(['127.0.0.2'])
  },
)

test.each(['defaultRequestTimeout: 50ms', 'options: {defaultRequestTimeout: 50ms}'])(
  'with the option %s, an unanswered request to a controller is repeated sooner than after the default timeout of 5 s',
  async (ctrl) => {
    controller.answersInterfaces = false
    await start(ctrl, 'interfaceDiscovery: {checkInterval: 1s}\n')
    await eventually(() => controller.timesOf(1052).length).toBeGreaterThan(3)
    expect(shortest(controller.timesOf(1052)), 'not after 5 s, as by default').toBeLessThan(4000)
  },
)

test.each(['connectTimeout: 50ms', 'connectTimeoutMs: 50'])(
  'the option %s limits how long a router waits for a controller that accepts the connection and sends nothing',
  async (option) => {
    const sockets: Socket[] = []
    const silent: Server = createServer((socket) =>
      sockets.push(socket.on('error', () => undefined)),
    )
    await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done))
    closing.push(() => {
      for (const socket of sockets) socket.destroy()
      silent.close()
    })
    const address = silent.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    await network.running([`tls:127.0.0.1:${port}`], '', `options: {${option}}`)
    await eventually(() => reasonsOf('cannot reach a controller')).toEqual([
      'no answer within 50 ms',
    ])
  },
)

test('a channel is closed if a message to the controller cannot be sent within writeTimeout', async () => {
  await start('options: {writeTimeout: 200ms}')
  const { channel } = controller
  if (channel !== null) closing.push(askWithoutReading(channel))
  await eventually(() => reasonsOf('disconnected from controller')).toContain(
    'a message was not sent within 200 ms',
  )
})

describe.each([
  ['heartbeats', 'heartbeats: {'],
  ['options.heartbeats', 'options: {heartbeats: {'],
])('The heartbeats that ctrl.%s configures', (_key, place) => {
  const heartbeats = (options: string): string =>
    place + options + '}'.repeat(place.split('{').length - 1)

  test('are sent more often than each second if sendInterval and checkInterval are shorter', async () => {
    await start(heartbeats('sendInterval: 100ms, checkInterval: 10ms'))
    await eventually(() => controller.timesOf(5).length).toBeGreaterThan(4)
    expect(shortest(controller.timesOf(5)), 'not each second').toBeLessThan(900)
  })

  test('mark a silent channel as unresponsive after unresponsiveAfter, and close it after closeUnresponsiveTimeout', async () => {
    const other = await network.controller('b')
    const times = 'sendInterval: 100ms, unresponsiveAfter: 100ms, closeUnresponsiveTimeout: 3s'
    await start(heartbeats(times), '', [other.address])
    await eventually(() => other.isConnected).toBe(true)
    controller.channel?.pauseReading()
    const body = toBinary(
      InspectRequestSchema,
      create(InspectRequestSchema, { requestedValues: ['router-controllers'] }),
    )
    const shown = async (): Promise<unknown> => {
      const reply = await other.channel?.request({ contentType: 1013, body })
      const { values } = fromBinary(InspectAnswerSchema, reply?.body ?? new Uint8Array())
      const { controllers } = JSON.parse(values[0]?.value ?? '{}') as {
        controllers: { controllerId: string }[]
      }
      return controllers.find(({ controllerId }) => controllerId === 'a')
    }
    await eventually(shown).toMatchObject({ isConnected: true, isResponsive: false })
    await eventually(() => reasonsOf('disconnected from controller')).toEqual([
      'no answer to heartbeats',
    ])
  })
})

test('with a checkInterval and minReportInterval of 1 s, a router reports its network interfaces more than once', async () => {
  await start('', 'interfaceDiscovery: {checkInterval: 1s, minReportInterval: 1s}\n')
  await eventually(() => controller.timesOf(1052).length).toBeGreaterThan(1)
})
