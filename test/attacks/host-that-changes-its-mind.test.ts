import { fromBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { CreateTerminatorV2Schema, UpdateEdgeTerminatorSchema } from '../../proto/gen/router_pb.ts'
import { encodeFlag } from '../../src/channel/headers.ts'
import { edgeLimits } from '../../src/router/edge/limits.ts'
import { EdgeBench, serviceToken, type TestClient } from '../router/edge/support.ts'
import { eventually } from '../router/support.ts'

// The attack: a host changes cost, precedence or health of its terminators, or binds and unbinds,
// as fast as it can. Each change is a write to the cluster's log, for which its router has only the
// same quota as other routers, so other hosts at that router wait or are refused.

const [bind, unbind, updateBind, healthEvent] = [60_790, 60_791, 60_794, 60_795]
const [created, updated, health] = [20_216, 20_209, 20_214]
const token = serviceToken('bind1')

let bench: EdgeBench
let host: TestClient
beforeEach(async () => {
  bench = await EdgeBench.open()
  host = await bench.admitted('mallory')
})
afterEach(() => bench.close())

/** Waits until the router has read all messages of the host. */
async function read(): Promise<void> {
  await host.channel.request({ contentType: 3 })
}

const costs = (): number[] =>
  bench.controller
    .ofType(updated)
    .map(({ body }) => fromBinary(UpdateEdgeTerminatorSchema, body ?? new Uint8Array()).cost)

const listener = (name: string) => [[1021, Buffer.from(name)]] as const

test('A router combines a thousand quick changes of a terminator into a few messages, the last of which contains the latest change', async () => {
  await host.request(bind, 1, token)
  for (let cost = 1; cost <= 1000; cost += 1) {
    host.send(updateBind, 1, token, [[1004, Uint8Array.of(cost & 255, cost >> 8)]])
  }
  await read()
  expect(costs()[0]).toBe(1)
  await eventually(() => costs().at(-1)).toBe(1000)
  expect(costs().length).toBeLessThan(20)
  // Each change reverts the previous one.
  for (let times = 0; times < 1000; times += 1) {
    host.send(healthEvent, 1, token, times % 2 === 0 ? [] : [[1013, encodeFlag(true)]])
  }
  await read()
  await eventually(() => bench.controller.ofType(health).length).toBeGreaterThan(0)
  expect(bench.controller.ofType(health).length).toBeLessThan(20)
})

test('All terminators of an identity share one rate limit for changes, and take turns', async () => {
  const count = 2 * edgeLimits.hostChangesBurst
  const ids = Array.from({ length: count }, (_, at) => at + 1)
  for (const id of ids) await host.request(bind, id, token, listener(`${id}`))
  for (const id of ids) host.send(updateBind, id, token, [[1004, Uint8Array.of(id, 0)]])
  await read()
  expect(costs().length).toBeLessThan(count)
  expect(costs().length).toBeGreaterThanOrEqual(edgeLimits.hostChangesBurst)
  bench.aheadMs += (1000 * count) / edgeLimits.hostChangesPerSecond
  await eventually(() => costs().toSorted((a, b) => a - b)).toEqual(ids)
})

test('An identity can create terminators only at a limited rate, even if it unbinds others at the same time', async () => {
  const { hostCreationsBurst, hostedPerChannelMax } = edgeLimits
  expect(hostCreationsBurst, 'a channel may host all at once').toBeGreaterThanOrEqual(
    hostedPerChannelMax,
  )
  const answers = new Set<string>()
  bench.controller.terminators = ({ address }) => {
    answers.add(address)
    return {}
  }
  const told = () => bench.controller.ofType(created).length
  const beganMs = performance.now()
  for (let id = 1; id <= hostCreationsBurst + 500; id += 1) {
    await host.request(bind, id, token, listener(`${id}`))
    host.send(unbind, id, token)
  }
  await read()
  const seconds = (performance.now() - beganMs) / 1000
  expect(told()).toBeLessThanOrEqual(
    hostCreationsBurst + edgeLimits.hostCreationsPerSecond * seconds + 1,
  )
  const ann = await bench.admitted('ann')
  const before = told()
  await ann.request(bind, 1, serviceToken('bind2'))
  await eventually(() => told() > before).toBe(true)
  const [last] = bench.controller.ofType(created).slice(-1)
  const { address } = fromBinary(CreateTerminatorV2Schema, last?.body ?? new Uint8Array())
  await eventually(() => answers.has(address)).toBe(true)
})
