import { expect, test } from 'vitest'

import { StateMachine } from '../../src/fsm/state-machine.ts'
import type { Entry } from '../../src/raft/types.ts'
import { MemoryStateStore } from '../../src/store/state/memory-state-store.ts'
import { service } from './support/log.ts'
import { contentOf, restorableState, Restore } from './support/restoring.ts'

// Goal: a member that restarts or receives a snapshot while a restore is staged takes the same step
// as all others. Method: three state machines apply one log; each is interrupted after a different
// entry of the restore.

const clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => 0 }

/**
 * A backup with two services, one of which has been deleted since. @returns the log up to the end
 * of the restore.
 */
function restoringLog(): { readonly entries: readonly Entry[]; readonly from: number } {
  const then = restorableState()
  const now = restorableState()
  for (const { log } of [then, now]) {
    for (const name of ['one', 'two']) log.create('service', name, service(name))
  }
  now.log.delete('service', 'one')
  const from = now.state.position.index
  const restore = new Restore(now.log, contentOf(then.state))
  restore.stage()
  now.log.create('service', 'meanwhile', service('meanwhile'))
  expect(restore.end()).toMatchObject({ ok: true })
  now.log.create('service', 'later', service('later'))
  return { entries: now.log.entries, from }
}

async function machineOn(store: MemoryStateStore): Promise<StateMachine> {
  return await StateMachine.open({ store, clock })
}

function applyTo(machine: StateMachine, entries: readonly Entry[]): void {
  for (const entry of entries) machine.apply(entry)
}

/** Replaces the state of one machine with that of another, as when a snapshot is received. */
async function install(from: StateMachine, to: StateMachine): Promise<void> {
  const snapshot = await from.snapshot()
  const receiver = await to.receive()
  for await (const chunk of snapshot.chunks()) await receiver.write(chunk)
  await receiver.finish()
  await snapshot.close()
  await to.restore(receiver)
}

function shown(machine: StateMachine): readonly unknown[] {
  return [...machine.ids('service')].sort()
}

test('a member may restart or receive a snapshot after any log entry of a restore, and all members reach the same state', async () => {
  const { entries, from } = restoringLog()
  for (let cut = from; cut < entries.length; cut += 1) {
    const whole = await machineOn(new MemoryStateStore())
    applyTo(whole, entries.slice(0, cut))
    const state = { records: new Map<string, string>(), mark: null, receivedIndex: null }
    const first = await machineOn(new MemoryStateStore(state))
    applyTo(first, entries.slice(0, cut))
    await first.close()
    const restarted = await machineOn(new MemoryStateStore(state))
    const sent = await machineOn(new MemoryStateStore())
    await install(whole, sent)
    const all = [whole, restarted, sent]
    for (const machine of all) expect(machine.digests()).toEqual(whole.digests())
    for (const machine of all) applyTo(machine, entries.slice(cut))
    for (const machine of all) expect(machine.digests(), `cut at ${cut}`).toEqual(whole.digests())
    for (const machine of all) expect(shown(machine)).toEqual(['later', 'one', 'two'])
    for (const machine of all) await machine.close()
  }
})

test('a follower of the state is notified once, after a restore, that all records may have changed', async () => {
  const { entries } = restoringLog()
  const machine = await machineOn(new MemoryStateStore())
  const told: string[] = []
  machine.follow(['service'], {
    onEntry: (_index, changes) => told.push(...changes.map(({ id }) => id)),
    onReplaced: () => told.push(`all: ${shown(machine).join(' ')}`),
  })
  const replacedAt: number[] = []
  machine.onRecordsReplaced = (index) => replacedAt.push(index)
  applyTo(machine, entries)
  expect(told).toEqual(['one', 'two', 'one', 'meanwhile', 'all: one two', 'later'])
  expect(replacedAt).toEqual([entries.length - 1])
  await machine.close()
})
