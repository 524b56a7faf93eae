import { afterEach, expect, test } from 'vitest'

import { CircuitTraceLog } from '../../../src/fabric/circuits/circuit-trace-log.ts'
import type { HostCandidate } from '../../../src/fabric/circuits/choose-host.ts'
import type { RouteFault } from '../../../src/fabric/circuits/route-fault.ts'
import { endsOf, linked, TestController, TestDialer, TestRouter } from './support.ts'

// Goal: the controller and each router of the path log a circuit of a traced identity step by step,
// and log no other circuit.

const controller = new TestController()
const routers: TestRouter[] = []
afterEach(() => {
  for (const { forwarder } of routers.splice(0)) forwarder.stop()
})

function router(id: string): TestRouter {
  const made = new TestRouter(id)
  routers.push(made)
  controller.connect(made)
  return made
}

const client = {
  sessionId: 'dial session',
  apiSessionId: 'api session',
  serviceId: 'wiki',
  identityId: 'ann',
  identityName: 'Ann',
}
const chosen = {
  host: { terminatorId: 't1' },
  path: { routerIds: ['r1', 'r2'], links: [{ id: 'l1' }], cost: 1 },
} as unknown as HostCandidate
const fault: RouteFault = { cause: 'NO_ONLINE_TERMINATORS', text: 'no host is there' } as RouteFault

function traceOf(channels: number): { trace: CircuitTraceLog; lines: [object, string][] } {
  const lines: [object, string][] = []
  const log = { info: (fields: object, message: string) => void lines.push([fields, message]) }
  const trace = { traceId: 'mine', channels }
  return { trace: new CircuitTraceLog({ log, trace, circuitId: 'c1', client }), lines }
}

test.each([
  [1, ['traced: host and path chosen', 'traced: no host can be reached']],
  [2, ['traced: circuit made', 'traced: attempt failed']],
])(
  'a controller logs the events of a traced circuit only for the requested trace channel %s',
  (channels, messages) => {
    const { trace, lines } = traceOf(channels)
    trace.onChosen(0, chosen)
    trace.onChosen(1, null)
    trace.onAttempted(0, null)
    trace.onAttempted(1, fault)
    expect(lines.map(([, message]) => message)).toEqual(messages)
    for (const [fields] of lines) {
      expect(fields).toMatchObject({ traceId: 'mine', circuitId: 'c1', identityId: 'ann' })
    }
  },
)

test('each router on the path of a traced circuit logs its route with the trace ID, and logs no route without a trace', async () => {
  const [one, two] = [router('r1'), router('r2')]
  const link = linked(one, two, 'l1')
  new TestDialer(two, controller)
  const { trace } = traceOf(3)
  await controller.lay(endsOf('c1'), [one, two], [{ id: link.id }], { trace: trace.ofRoutes })
  await controller.lay(endsOf('c2'), [one, two], [{ id: link.id }])
  for (const each of [one, two]) {
    const logged = each.lines.filter(({ message }) => message === 'traced: circuit routed')
    expect(logged).toMatchObject([
      { fields: { traceId: 'mine', sessionId: 'dial session', circuitId: 'c1' } },
    ])
  }
})

test('a router does not log a route if the trace was requested only for the other trace channel', async () => {
  const one = router('r1')
  new TestDialer(one, controller)
  await controller.lay(endsOf('c3'), [one], [], { trace: traceOf(1).trace.ofRoutes })
  expect(one.logged('traced')).toEqual([])
})
