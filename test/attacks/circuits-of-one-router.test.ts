import { beforeEach, expect, test } from 'vitest'

import { routerLimits } from '../../src/fabric/limits.ts'
import { CircuitRequestLimiter } from '../../src/fabric/circuits/circuit-request-limiter.ts'
import { type Circuit, CircuitTable } from '../../src/fabric/circuits/circuit-table.ts'

// The attack: a stolen router requests circuits to itself as fast as it can, with the sessions of
// all clients that it knows, until the controllers have no capacity for circuits of others and the
// routers no time; or a client does so through many routers.

const { circuitsWaitingMax, circuitsOfRouterBurst, circuitsOfRouterPerSecond } = routerLimits
const { circuitsOfClientBurst, circuitsOfClientPerSecond } = routerLimits

let nowMs: number
let table: CircuitTable
let allowance: CircuitRequestLimiter
beforeEach(() => {
  nowMs = 0
  table = new CircuitTable({
    owner: 'ctrl1',
    rowsMax: 100,
    viewOf: ({ ends, live }) => ({ ...live, id: ends.id, routerIds: [], linkIds: [] }),
    onRemoved: () => undefined,
  })
  allowance = new CircuitRequestLimiter({ table, clock: { monotonicMs: () => nowMs } })
})

/** Sends requests one after the other. @returns how many are admitted. */
function admitted(requests: number, routerId: string, clientOf: (at: number) => string): number {
  let count = 0
  for (let at = 0; at < requests; at += 1) {
    allowance.begin(routerId)
    try {
      allowance.admit(routerId, { identityId: clientOf(at) })
      count += 1
    } catch {
      // This request exceeded the limit.
    }
    allowance.end(routerId)
  }
  return count
}

/** Opens a circuit from the router and keeps it. @returns false if the limit is reached. */
function kept(id: string, routerId: string, clientId: string): boolean {
  if (!table.hasRoomFor(routerId, clientId)) return false
  const live = { clientId, serviceId: 's', sessionId: '', terminatorId: 't', createdAt: 0 }
  const circuit: Circuit = {
    live,
    ends: { id, ingress: 'in', egress: 'out' },
    path: { routerIds: [routerId, 'host'], links: [], cost: 0 },
    hostId: 'h',
    instanceId: '',
    isOfTunnel: false,
    isHostedByTunnel: false,
    turn: 0,
  }
  return table.set(id, circuit)
}

test('A router cannot exceed its rate of circuit requests by presenting other clients’ sessions', () => {
  const flood = 2 * circuitsOfRouterBurst
  expect(admitted(flood, 'stolen', (at) => `client ${at}`)).toBe(circuitsOfRouterBurst)
  expect(
    admitted(10, 'r1', () => 'ann'),
    'another router',
  ).toBe(10)
  nowMs += 1000
  expect(admitted(flood, 'stolen', (at) => `client ${at}`)).toBe(circuitsOfRouterPerSecond)
})

test('A client has a limited rate of requests over all routers together', () => {
  const [half, flood] = [circuitsOfClientBurst / 2, 2 * circuitsOfClientBurst]
  expect(admitted(half, 'r1', () => 'mallory')).toBe(half)
  expect(admitted(flood, 'r2', () => 'mallory')).toBe(half)
  expect(
    admitted(10, 'r2', () => 'ann'),
    'another client of the router',
  ).toBe(10)
  nowMs += 1000
  expect(admitted(flood, 'r3', () => 'mallory')).toBe(circuitsOfClientPerSecond)
})

test('A router that dials with its own identity has the same rate limit as every other router', () => {
  expect(admitted(2 * circuitsOfRouterBurst, 'r1', () => 'r1')).toBe(circuitsOfRouterBurst)
})

test('A router can have only a limited number of pending circuit requests', () => {
  for (let at = 0; at < circuitsWaitingMax; at += 1) allowance.begin('stolen')
  expect(() => allowance.begin('stolen')).toThrow('too many circuits')
  allowance.begin('r1')
  allowance.end('stolen')
  allowance.begin('stolen')
})

test('Neither a router nor a client can fill the circuit table, and ended circuits free their slots', () => {
  const ids = Array.from({ length: 100 }, (_, at) => `${at}`)
  expect(ids.filter((id) => kept(id, 'stolen', `client ${id}`))).toHaveLength(75)
  expect(kept('of ann', 'r1', 'ann')).toBe(true)
  for (const id of [...ids, 'of ann']) table.drop(id)
  expect(ids.filter((id) => kept(id, `router ${id}`, 'mallory'))).toHaveLength(75)
  expect(kept('of ann', 'r1', 'ann')).toBe(true)
})
