import { afterAll, beforeAll, expect, test } from 'vitest'

import { until } from './support/client.ts'
import { CircuitNetwork } from './support/circuit-network.ts'

// Goal: circuits survive faults of controllers, links and routers; circuits that cannot continue
// end on both sides. Method: three real controllers and four real routers with streams of numbered
// words; `make circuits` runs more of them.

const FAR = 12
const NEAR = 8
let network: CircuitNetwork

beforeAll(async () => {
  network = await CircuitNetwork.start({ hasCalmElections: false })
  await network.open(FAR, NEAR)
})
afterAll(async () => {
  await network[Symbol.asyncDispose]()
})

async function expectWhole(count: number): Promise<void> {
  const { streams, server } = network
  await streams.settled()
  expect([streams.living.length, streams.faults, server.faults]).toEqual([
    count,
    { lost: 0, doubled: 0 },
    0,
  ])
  console.log(`longest silence ${streams.silenceMs} ms`)
  streams.forgetSilence()
}

test('circuits continue when the leader that owns them is killed, and the other controllers take them over', async () => {
  const leader = await network.leadByOwner()
  await network.killController(leader)
  await network.answeredFor(FAR + NEAR)
  await expectWhole(FAR + NEAR)
})

test('circuits are rerouted when their link is interrupted', async () => {
  const { cable } = network
  await cable.complete(network.pids('left', 'right'))
  const moved = await network.moved(() => {
    cable.isOut = true
    expect(cable.cutBusiest(network.pids('left', 'right'))).toBeGreaterThan(1)
  })
  expect(moved).toBeGreaterThanOrEqual(NEAR)
  await expectWhole(FAR + NEAR)
})

test('circuits of a killed router end at the client and at the target, and circuits of other routers continue', async () => {
  const { streams, server } = network
  await network.killRouter('host')
  await until('the streams end at both sides', () =>
    Promise.resolve(streams.living.length === NEAR && server.ends.length === FAR),
  )
  expect(streams.all.filter(({ end }) => end?.isReset === true)).toHaveLength(FAR)
  await network.answeredFor(NEAR)
  await expectWhole(NEAR)
})
