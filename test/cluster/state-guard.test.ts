import { expect, test } from 'vitest'

import { CounterMachine } from '../../bench/support/counter-machine.ts'
import { Alarms } from '../../src/cluster/health/alarms.ts'
import { quarantineLimits } from '../../src/cluster/state-transfer/quarantine.ts'
import { StateDivergenceHandler } from '../../src/cluster/state-transfer/state-divergence-handler.ts'
import type { Clock } from '../../src/lib/clock.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { PeerChannel } from '../../src/cluster/peer-channel.ts'
import { RecordedLog } from './mesh-fixture.ts'

// Tests that would take minutes with real controllers: the clock is simulated, and the other
// members do not respond.

class ManualClock implements Clock {
  ms = 0
  nowMs = (): number => this.ms
  monotonicMs = (): number => this.ms
}

function stage() {
  const clock = new ManualClock()
  const log = new RecordedLog()
  const called: string[] = []
  const events: string[] = []
  const note = (event: string) => (): void => {
    events.push(event)
  }
  const peers: PeerChannel = {
    note: () => undefined,
    onNote: () => undefined,
    onLink: () => undefined,
    readyPeers: () => ['b', 'c'],
    serve: () => undefined,
    call: (to) => {
      called.push(to)
      return Promise.reject(new Problem('PEER_UNREACHABLE'))
    },
  }
  const receiving = { chunks: null as number | null }
  const guard = new StateDivergenceHandler({
    clock,
    log: log.log,
    peers,
    selfId: 'a',
    machine: new CounterMachine({ persistEntries: 100, isChained: true }),
    alarms: new Alarms(clock, log.log),
    mark: { isSet: () => true, set: () => undefined, clear: () => undefined },
    voters: () => ['a', 'b', 'c'],
    leaderId: () => 'b',
    isFailing: () => false,
    receivedChunks: () => receiving.chunks,
    dropReceived: note('drop'),
    bytesPerSecond: Infinity,
    onQuarantine: note('quarantine'),
    hold: note('hold'),
    resumeApply: note('let go'),
    derive: () => Promise.resolve(),
    onReplaced: note('replaced'),
    onRelease: note('release'),
    handOver: note('hand over'),
    onFatal: note('fatal'),
  })
  /** Advances time in steps, and waits for the work that each step starts. */
  const pass = async (ms: number): Promise<void> => {
    for (const end = clock.ms + ms; clock.ms < end; clock.ms += 500) {
      guard.sweep()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  return { clock, called, events, receiving, guard, pass }
}

test('a quarantined controller that receives no state applies no entries for a minute, and after this minute only pauses during each attempt to fetch a state', async () => {
  const { events, guard, pass } = stage()
  expect(guard.isHeld).toBe(true)
  await pass(quarantineLimits.holdMsMax - 1000)
  expect([guard.isHeld, events.includes('let go')]).toEqual([true, false])
  await pass(2 * quarantineLimits.retryMsMax)
  expect([guard.isHeld, guard.isQuarantined]).toEqual([false, true])
  events.length = 0
  await pass(3 * quarantineLimits.retryMsMax)
  expect(events).toEqual(['hold', 'let go', 'hold', 'let go', 'hold', 'let go'])
})

test('each attempt to rebuild a quarantined state requests the state from another member, and from the leader last', async () => {
  const { called, pass } = stage()
  await pass(10_000)
  expect(called.slice(0, 3)).toEqual(['c', 'b', 'c'])
})

test('the rebuild of a quarantined state waits for an incoming snapshot from the leader while chunks of it arrive', async () => {
  const { called, events, receiving, pass } = stage()
  for (receiving.chunks = 0; receiving.chunks < 10; receiving.chunks += 1) await pass(50_000)
  expect([called, events]).toEqual([[], []])
  await pass(62_000)
  expect(events).toContain('drop')
  receiving.chunks = null
  await pass(1000)
  expect(called[0]).toBe('c')
})

test('a state guard that was stopped starts no further attempt to rebuild the state', async () => {
  const { called, guard, pass } = stage()
  await guard.stop()
  await pass(60_000)
  expect(called).toEqual([])
})
