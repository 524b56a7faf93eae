import { setImmediate as turn } from 'node:timers/promises'
import { assert } from '../../../src/lib/assert.ts'
import { seededRandom } from '../../../src/lib/random.ts'
import { RaftCore } from '../../../src/raft/core.ts'
import { defaultRaftNodeLimits } from '../../../src/raft/node-start.ts'
import { RaftNode } from '../../../src/raft/node.ts'
import { defaultCoreOptions } from '../../../src/raft/options.ts'
import { MemoryDisk } from '../../support/memory-disk.ts'
import { configurationOf, formingEntries } from '../../raft/members.ts'

const TURNS_MAX = 2000

/**
 * The callback that runs when this controller becomes leader fails. The controller must not
 * continue to lead: it stops, and another one leads.
 */
export async function scenario(): Promise<void> {
  const configuration = configurationOf({ voters: ['1'] })
  const { disk, restored } = MemoryDisk.form({ entries: formingEntries(configuration) })
  const core = RaftCore.restore({
    id: '1',
    options: defaultCoreOptions,
    random: seededRandom(1),
    log: restored,
    applied: { term: 1, index: 2 },
    configuration,
    appliedTimeMs: 0,
  })
  let passedMs = 0
  let hasFailed = false
  let hasStopped = false
  const node = new RaftNode({
    core,
    disk,
    transport: { send: () => undefined },
    clock: { nowMs: () => Date.now(), monotonicMs: () => passedMs },
    scheduler: {
      soon: (task) => setImmediate(task),
      after: (_delayMs, task) => {
        const tick = setImmediate(() => {
          passedMs += defaultRaftNodeLimits.tickMs
          task()
        })
        return () => clearImmediate(tick)
      },
    },
    limits: defaultRaftNodeLimits,
    callbacks: {
      onCommitted: () => undefined,
      onProposals: () => undefined,
      onStatus: ({ role }) => {
        if (role !== 'leader' || hasFailed) return
        hasFailed = true
        throw new Error('the leader can not take office')
      },
      onSendSnapshot: () => undefined,
      onRestore: () => Promise.resolve(),
      onFatal: () => (hasStopped = true),
    },
  })
  node.start()
  for (let turns = 0; turns < TURNS_MAX && !hasStopped; turns += 1) {
    await turn()
  }
  node.stop()
  assert(hasFailed, 'the node was elected')
  assert(hasStopped, 'I18: it leads on, though the program above it never took office')
}
