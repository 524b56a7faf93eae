import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { createServer, type Server } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'

import {
  CreateTerminatorResult,
  ModelPrecedence,
  TerminatorStatesSchema,
  ValidateTerminatorsSchema,
} from '../../../proto/gen/router_pb.ts'
import { eventually } from '../support.ts'
import { configOf, echoServer, identity, member, serviceOf, TunnelStage } from './support.ts'

// Goal: a tunnel hosts exactly the services that its identity may host, as long as it may host
// them, and as the configs describe. Method: a real router and real targets; the test plays its
// controller.

const closing: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function running(events: Parameters<typeof TunnelStage.create>[0]): Promise<TunnelStage> {
  const stage = await TunnelStage.create(events)
  closing.push(() => stage.close())
  return stage
}

const host = (port: number, more: object = {}) => ({
  'host.v1': { protocol: 'tcp', address: '127.0.0.1', port, ...more },
})

describe('A service that the identity of a router may host', () => {
  test('has a terminator with the configured cost, precedence and instance', async () => {
    const listenOptions = {
      cost: 7,
      precedence: 'required',
      identity: '$tunneler_id.name@$tunneler_id.appData[place]',
    }
    const { controller } = await running(serviceOf('s1', host(80, { listenOptions })))
    expect(await controller.terminator('s1')).toMatchObject({
      cost: 7,
      precedence: ModelPrecedence.REQUIRED,
      instanceId: 'name of router1@berlin',
    })
  })

  test('uses the identity’s cost for the service instead of the cost in the config', async () => {
    const own = identity({ serviceHostingCosts: { s1: 9 }, defaultHostingPrecedence: 'failed' })
    const { controller } = await running([
      own,
      ...serviceOf('s1', host(80, { listenOptions: { cost: 7 } })),
    ])
    expect(await controller.terminator('s1')).toMatchObject({
      cost: 9,
      precedence: ModelPrecedence.FAILED,
    })
  })

  test('has one terminator for each terminator in its host.v2 config', async () => {
    const one = host(80)['host.v1']
    const { controller } = await running(
      serviceOf('s1', { 'host.v2': { terminators: [one, one] } }),
    )
    await eventually(() => controller.terminators.size).toBe(2)
  })

  test('has its terminator requested again if a controller was busy; after an ID conflict, the tunneler first removes the other terminator with this ID', async () => {
    const stage = await running([])
    const { FAILED_BUSY, FAILED_ID_CONFLICT } = CreateTerminatorResult
    stage.controller.refusals.push(FAILED_BUSY, FAILED_ID_CONFLICT)
    await eventually(() => stage.controller.scripted.ofType(20_505).length).toBe(1)
    await eventually(() => stage.network.logged('data model received').length).toBe(1)
    stage.controller.change(serviceOf('s1', host(80)))
    await stage.controller.terminator('s1')
    expect(stage.controller.scripted.ofType(20_413)).toHaveLength(3)
    expect(stage.controller.scripted.ofType(1038)).toHaveLength(1)
  })

  test('is reported in a log line if it cannot be hosted in the way that its config requires', async () => {
    const { network, controller } = await running(
      serviceOf('s1', host(80, { allowedSourceAddresses: ['10.0.0.0/8'] })),
    )
    await eventually(() => network.logged('service not hosted').length).toBe(1)
    expect(network.logged('service not hosted')[0]?.fields['reason']).toContain('not supported')
    controller.change([configOf('s1', 'host.v1', host(80)['host.v1'])])
    await controller.terminator('s1')
  })
})

/** Dials a circuit to the target, and exchanges bytes in both directions. */
async function dialed(stage: TunnelStage, target: { readonly sockets: readonly object[] }) {
  const { address } = await stage.controller.terminator('s1')
  const before = target.sockets.length
  const outcome = await stage.controller.dial(address)
  expect(outcome).toMatchObject({ isSuccess: true })
  await eventually(() => target.sockets.length).toBe(before + 1)
  return outcome
}

describe('A circuit to a hosted service', () => {
  test('is connected to its target, and its response contains both socket addresses of the connection', async () => {
    const target = await echoServer()
    closing.push(target.close)
    const stage = await running(serviceOf('s1', host(target.port)))
    const { peerData } = await dialed(stage, target)
    expect(Buffer.from(peerData.get(1111) ?? []).toString()).toBe(`127.0.0.1:${target.port}`)
    expect(Buffer.from(peerData.get(1110) ?? []).toString()).toMatch(/^127\.0\.0\.1:\d+$/)
  })

  test.each<[string, (stage: TunnelStage, port: number) => void]>([
    [
      'is removed from its policies',
      ({ controller }) => controller.change([member('Bind', 's1', false)]),
    ],
    [
      'gets another config',
      ({ controller }, port) =>
        controller.change([
          configOf('s1', 'host.v1', { ...host(port)['host.v1'], listenOptions: { cost: 3 } }),
        ]),
    ],
    [
      'loses its host, because the identity is disabled',
      ({ controller }) => controller.change([identity({ disabledAt: -1 })]),
    ],
  ])('ends when the service %s', async (_what, change) => {
    const target = await echoServer()
    closing.push(target.close)
    const stage = await running(serviceOf('s1', host(target.port)))
    await dialed(stage, target)
    const { address } = await stage.controller.terminator('s1')
    change(stage, target.port)
    await eventually(() => target.sockets[0]?.destroyed).toBe(true)
    await eventually(() => stage.controller.scripted.ofType(1038).length).toBeGreaterThan(0)
    if (stage.controller.terminators.has(address)) return
    const again = await stage.controller.dial(address)
    expect(again.isSuccess || again.code === 1).toBe(true)
  })

  test('continues when only the identity’s cost for the service changes', async () => {
    const target = await echoServer()
    closing.push(target.close)
    const stage = await running(serviceOf('s1', host(target.port)))
    await dialed(stage, target)
    stage.controller.change([identity({ serviceHostingCosts: { s1: 44 } })])
    await eventually(() => stage.controller.updates.at(-1)?.cost).toBe(44)
    expect((target.sockets[0] as { readableEnded?: boolean }).readableEnded).toBe(false)
    expect(stage.controller.scripted.ofType(1038)).toEqual([])
  })

  test.each<[string, number, object, Readonly<Record<number, Uint8Array>>, number, string]>([
    ['whose target refuses the connection', 0, {}, {}, 4, 'cannot reach'],
    [
      'that is requested without the required encryption',
      1,
      { isEncrypted: true },
      {},
      5,
      'requires encryption',
    ],
    [
      'whose client sends an invalid public key',
      1,
      {},
      { 1003: Uint8Array.of(1, 2) },
      0,
      'public key',
    ],
    [
      'whose client sends application data that is not JSON',
      1,
      {},
      { 1011: Uint8Array.of(1) },
      5,
      'application data',
    ],
  ])(
    '%s fails, and the response contains the reason',
    async (_what, isThere, more, peerData, code, reason) => {
      const target = await echoServer()
      closing.push(target.close)
      const isEncrypted = 'isEncrypted' in more
      const stage = await running(
        serviceOf('s1', host(isThere === 1 ? target.port : 1), ['Bind'], isEncrypted),
      )
      const { address } = await stage.controller.terminator('s1')
      const outcome = await stage.controller.dial(address, peerData)
      expect(outcome).toMatchObject({ isSuccess: false, code })
      expect(outcome.reason).toContain(reason)
    },
  )

  test('can reach its target through an HTTP proxy', async () => {
    const asked: string[] = []
    const proxy: Server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', (head) => {
        asked.push(head.toString())
        socket.write('HTTP/1.1 200 Connection established\r\n\r\nwelcome')
      })
    })
    await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
    closing.push(() => {
      proxy.close()
    })
    const address = proxy.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const through = {
      proxy: { type: 'http', address: `127.0.0.1:${port}` },
      address: 'far.example',
    }
    const { controller } = await running(serviceOf('s1', host(8443, through)))
    const made = await controller.terminator('s1')
    expect(await controller.dial(made.address)).toMatchObject({ isSuccess: true })
    expect(asked[0]).toBe('CONNECT far.example:8443 HTTP/1.1\r\nHost: far.example:8443\r\n\r\n')
  })
})

test('a tunneler responds to a controller that asks whether the tunneler’s terminators are valid', async () => {
  const { controller } = await running(serviceOf('s1', host(80)))
  const { address: id } = await controller.terminator('s1')
  const message = create(ValidateTerminatorsSchema, {
    terminators: [
      { id, binding: 'tunnel', marker: 7n },
      { id: 'gone', binding: 'tunnel', marker: 8n },
    ],
  })
  controller.scripted.send({
    contentType: 1041,
    body: toBinary(ValidateTerminatorsSchema, message),
  })
  await eventually(() => controller.scripted.ofType(1042).length).toBe(1)
  const { states } = fromBinary(
    TerminatorStatesSchema,
    controller.scripted.ofType(1042)[0]?.body ?? new Uint8Array(),
  )
  expect(states[id]).toMatchObject({ valid: true, marker: 7n })
  expect(states['gone']).toMatchObject({ valid: false, marker: 8n })
})

test('a failed health check raises the cost of a terminator and marks the terminator as failed, until the check succeeds', async () => {
  const target = await echoServer()
  closing.push(target.close)
  const address = `127.0.0.1:${target.port}`
  const actions = [
    { trigger: 'fail', action: 'increase cost 10' },
    { trigger: 'fail', action: 'mark unhealthy', consecutiveEvents: 2 },
    { trigger: 'change', action: 'send event' },
    { trigger: 'pass', action: 'decrease cost 1000' },
    { trigger: 'pass', action: 'mark healthy' },
  ]
  const checks = { portChecks: [{ address, interval: '100ms', timeout: '1s', actions }] }
  const { controller } = await running(serviceOf('s1', host(80, checks)))
  await controller.terminator('s1')
  await eventually(() => controller.scripted.ofType(20_412).length).toBe(1)
  target.close()
  await eventually(() => controller.updates.some(({ cost }) => cost >= 10)).toBe(true)
  await eventually(() => controller.updates.at(-1)?.precedence).toBe(ModelPrecedence.FAILED)
  const again = createServer((socket) => socket.destroy())
  await new Promise<void>((done) => again.listen(target.port, '127.0.0.1', done))
  closing.push(() => {
    again.close()
  })
  await eventually(() => controller.updates.at(-1)).toMatchObject({
    cost: 0,
    precedence: ModelPrecedence.DEFAULT,
  })
})
