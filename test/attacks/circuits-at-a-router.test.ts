import { afterEach, beforeEach, expect, test } from 'vitest'

import { forwardLimits } from '../../src/router/forward/limits.ts'
import {
  endsOf,
  frame,
  linked,
  TestController,
  TestDialer,
  type TestPlace,
  TestRouter,
} from '../router/forward/support.ts'
import { eventually } from '../router/support.ts'

// The attack: a router that knows the ID of a circuit sends into it, or receives its frames, over a
// link on which no controller has routed the circuit; or it fills the memory and the log of another
// router with frames of unknown circuits.

const circuit = endsOf('circuit1')
let controller: TestController
let [client, host, attacker]: TestRouter[] = []
let dialer: TestDialer

beforeEach(() => {
  controller = new TestController()
  ;[client, host, attacker] = ['client', 'host', 'attacker'].map((id) => {
    const router = new TestRouter(id, 'faultTxInterval: 40')
    controller.connect(router)
    return router
  })
  dialer = new TestDialer(at(host), controller)
})
afterEach(() => {
  for (const router of [client, host, attacker]) at(router).forwarder.stop()
})

function at(router: TestRouter | undefined): TestRouter {
  if (router === undefined) throw new Error('no such router')
  return router
}

async function laid(): Promise<{ cut: () => void; clientEnd: TestPlace; hostEnd: TestPlace }> {
  const link = linked(at(client), at(host), 'l1')
  await controller.lay(circuit, [at(client), at(host)], [link])
  const clientEnd = at(client).attach(controller, circuit, false)
  clientEnd.send('mine')
  const hostEnd = dialer.placeOf(circuit)
  await eventually(() => hostEnd.bodies).toEqual(['mine'])
  return { cut: () => link.cut(), clientEnd, hostEnd }
}

/** Waits until the router has received everything that the attacker sent. */
async function missed(router: TestRouter | undefined, count: number): Promise<void> {
  await eventually(() => at(router).forwarder.figures()['forwarder.faults']).toBe(count)
}

test('a router cannot send data into a circuit that does not use the router’s link', async () => {
  const { clientEnd, hostEnd } = await laid()
  for (const [victim, id] of [
    [client, 'l2'],
    [host, 'l3'],
  ] as const) {
    const { ofFirst } = linked(at(attacker), at(victim), id)
    for (const type of [1100, 1101, 1102]) {
      const body = type === 1102 ? `\x01${circuit.id}` : 'forged'
      ofFirst.trySend(frame(circuit.id, body, type), 1_000_000)
    }
    await missed(victim, 3)
  }
  expect([hostEnd.bodies, clientEnd.bodies]).toEqual([['mine'], []])
})

test('data over a link that a circuit does not use is not counted as traffic of the circuit', async () => {
  await laid()
  const told = (): object[] => {
    const circuits: object[] = []
    at(host).forwarder.usages.sendUsage((report) => circuits.push(...report.circuits) > 0)
    return circuits
  }
  expect(told()).toMatchObject([{ bytes: { 'fabric.rx': 4, 'egress.tx': 4 } }])
  const { ofFirst } = linked(at(attacker), at(host), 'l3')
  ofFirst.trySend(frame(circuit.id, 'forged'), 1_000_000)
  await missed(host, 1)
  expect(told()).toEqual([])
})

test('a link that reuses the ID of a closed link gives no access to the circuits of the closed link', async () => {
  const { cut, hostEnd } = await laid()
  cut()
  const { ofFirst } = linked(at(attacker), at(host), 'l1')
  ofFirst.trySend(frame(circuit.id, 'forged'), 1_000_000)
  await missed(host, 1)
  expect(hostEnd.bodies).toEqual(['mine'])
})

test('a link that reuses the ID of a closed link receives no frames for the circuits of the closed link', async () => {
  const { cut, clientEnd } = await laid()
  cut()
  linked(at(attacker), at(client), 'l1')
  clientEnd.send('for the host alone')
  await missed(client, 1)
  const { ofFirst } = linked(at(client), at(attacker), 'l2')
  ofFirst.trySend(frame('last', 'x'), 1_000_000)
  await missed(attacker, 1)
})

test('IDs of unknown circuits are remembered up to a limit, and a router that sends many of them causes one log line', async () => {
  // The report waits until a controller is connected.
  controller.disconnect(at(host))
  const { ofFirst } = linked(at(attacker), at(host), 'l2')
  const other = linked(at(client), at(host), 'l3').ofFirst
  const total = 20_000
  for (let sent = 0; sent < total;) {
    if (ofFirst.trySend(frame(`none-${sent}`, ''), 1_000_000)) sent += 1
    else await new Promise((done) => ofFirst.onceWritable(() => done(null)))
  }
  await missed(host, total)
  other.trySend(frame('of-an-honest-one', ''), 1_000_000)
  await missed(host, total + 1)
  controller.connect(at(host))
  const told = (): string[] => controller.faults(at(host)).flatMap(({ ids }) => ids)
  await eventually(told).toContain('of-an-honest-one')
  expect(told().length).toBeLessThan(forwardLimits.missesMax)
  expect(at(host).lines.filter(({ fields }) => fields['routerId'] === 'attacker')).toHaveLength(1)
})
