import { beforeEach, expect, test } from 'vitest'

import { DialCosts } from '../../src/fabric/circuits/dial-costs.ts'
import { routerLimits } from '../../src/fabric/limits.ts'
import { ManualClock } from '../api/support/manual-time.ts'

const MINUTE_MS = 60_000

let clock: ManualClock
let open: number
let costs: DialCosts

beforeEach(() => {
  clock = new ManualClock()
  open = 0
  costs = new DialCosts(clock, () => open)
})

test('each open circuit adds two to the cost of its terminator', () => {
  open = 3
  expect(costs.of('t1')).toBe(6)
})

test('each failed dial adds twenty to the cost of a terminator, and each successful dial removes two of this addition', () => {
  costs.failed('t1')
  costs.failed('t1')
  costs.succeeded('t1')
  expect([costs.of('t1'), costs.of('t2')]).toEqual([38, 0])
  for (let times = 0; times < 50; times += 1) costs.succeeded('t1')
  expect(costs.of('t1')).toBe(0)
})

test('the cost that failures added to a terminator decreases by ten per minute, and after twenty minutes without a failure by more', () => {
  for (let times = 0; times < 20; times += 1) costs.failed('t1')
  clock.advance(MINUTE_MS - 1)
  expect(costs.of('t1')).toBe(400)
  clock.advance(1)
  expect(costs.of('t1')).toBe(390)
  clock.advance(18 * MINUTE_MS)
  expect(costs.of('t1')).toBe(210)
  // Twenty minutes after the last failure, sixteen are subtracted per minute, and in the next five
  // minutes thirty-two.
  clock.advance(MINUTE_MS)
  expect(costs.of('t1')).toBe(194)
  costs.failed('t1')
  expect(costs.of('t1')).toBe(214)
  clock.advance(MINUTE_MS)
  expect(costs.of('t1')).toBe(204)
  clock.advance(1e6 * MINUTE_MS)
  expect(costs.of('t1')).toBe(0)
})

test('the failures of the terminator that failed longest ago are forgotten if too many terminators have failures', () => {
  costs.failed('t1')
  for (let at = 0; at < routerLimits.failingHostsMax; at += 1) costs.failed(`other ${at}`)
  expect([costs.of('t1'), costs.of('other 0')]).toEqual([0, 20])
})
