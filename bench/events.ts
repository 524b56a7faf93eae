import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, CommandSchema, EntityWriteSchema } from '../proto/gen/command_pb.ts'
import { normalizeBody } from '../src/entities/normalize-body.ts'
import { findEntity } from '../src/entities/registry.ts'
import { EventBus } from '../src/events/event-bus.ts'
import { eventLimits } from '../src/events/limits.ts'
import { publishedKinds } from '../src/events/published-records.ts'
import { LogEntryEvents } from '../src/events/sources/log-entry-events.ts'
import { StateMachine } from '../src/fsm/state-machine.ts'
import { canonicalJson } from '../src/lib/text/canonical-json.ts'
import { systemClock } from '../src/lib/clock.ts'
import { HISTORY_FEATURE_LEVEL } from '../src/ports/feature-level.ts'
import { createSystemActor } from '../src/ports/actor.ts'
import type { Entry } from '../src/raft/types.ts'
import { MemoryStateStore } from '../src/store/state/memory-state-store.ts'

// Measures the processor time of applying entries with events. Compares the same entries without
// events, with a follower of the change feed that does nothing, with events that have no reader,
// and with a reader of every event.

const storeId = new Uint8Array(16).fill(7)
const modes = [
  'without events',
  'the change feed alone',
  'no reader',
  'every text is read',
  'without events, the audit log keeps changes',
] as const
const nothingDone = { onEntry: () => undefined, onReplaced: () => undefined }
type Mode = (typeof modes)[number]

function entryOf(index: number): Entry {
  const { fields } = normalizeBody(findEntity('service'), 'create', {
    name: `bench-service-${index}`,
    encryptionRequired: true,
    roleAttributes: ['bench', `group-${index % 100}`],
  })
  const json = new TextEncoder().encode(canonicalJson(fields))
  const write = create(EntityWriteSchema, { entity: 'service', id: `svc-${index}`, json })
  const sequence = BigInt(index)
  const command = create(CommandSchema, {
    origin: { storeId, boot: 1n, sequence, lowestOutstanding: sequence },
    actor: createSystemActor({ name: 'controller:bench' }),
    kind: CommandKind.ENTITY_CREATE,
    level: 1,
    payload: toBinary(EntityWriteSchema, write),
  })
  const data = toBinary(CommandSchema, command)
  return { index, term: 1, timeMs: 1_700_000_000_000 + index, type: 'command', data }
}

/** Processor time of this process; the load of other processes does not increase it. */
function processorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** @returns processor time for each entry, µs. */
async function run(entries: readonly Entry[], mode: Mode): Promise<number> {
  const machine = await StateMachine.open({
    store: new MemoryStateStore(),
    clock: systemClock,
    onState: (state) => {
      if (mode === 'without events, the audit log keeps changes')
        state.featureLevel = HISTORY_FEATURE_LEVEL
    },
  })
  const bus = new EventBus({
    selfId: 'ctrl1',
    generation: 1,
    startedAtMs: 1,
    limits: eventLimits,
    appliedIndex: () => machine.appliedIndex,
  })
  if (mode === 'the change feed alone') machine.follow(publishedKinds, nothingDone)
  else if (!mode.startsWith('without events')) new LogEntryEvents(bus, machine)
  let [characters, next] = [0, 0]
  const before = processorMs()
  for (const entry of entries) {
    machine.apply(entry)
    if (mode !== 'every text is read') continue
    for (; next < bus.ring.end; next += 1) characters += bus.ring.at(next)?.text.length ?? 0
  }
  const tookUs = ((processorMs() - before) * 1000) / entries.length
  await machine.close()
  if (mode === 'every text is read' && characters === 0) throw new Error('nothing was read')
  return tookUs
}

const entries = Array.from({ length: 50_000 }, (_, at) => entryOf(at + 1))
const best = new Map<Mode, number>()
for (let round = 0; round < 4; round += 1) {
  for (const mode of modes) {
    const us = await run(entries, mode)
    // The first round is only for warming up the compiler.
    if (round > 0) best.set(mode, Math.min(us, best.get(mode) ?? Infinity))
  }
}
for (const [mode, us] of best) {
  console.log(
    `apply createService, ${mode}: ${us.toFixed(2)} µs of processor time an entry, ${Math.round(1e6 / us)}/s`,
  )
}
