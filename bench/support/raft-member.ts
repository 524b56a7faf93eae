import { CommandKind } from '../../proto/gen/command_pb.ts'
import { ClusterNode } from '../../src/cluster/cluster-node.ts'
import { defaultClusterNodeOptions } from '../../src/cluster/cluster-node-deps.ts'
import type { ConsensusOptions } from '../../src/cluster/consensus-options.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { startThreads } from '../../src/threads/start-threads.ts'
import { CounterMachine } from './counter-machine.ts'
import { SYSTEM_ACTOR } from '../../src/ports/actor.ts'

/** Commands that the benchmark sends to a member's process, and its responses. */
export type MemberCommand =
  | { readonly type: 'start'; readonly dir: string; readonly host: ConsensusOptions }
  | {
      readonly type: 'load'
      readonly proposers: number
      readonly seconds: number
      readonly payloadBytes: number
    }
  | { readonly type: 'stop' }
export type MemberAnswer =
  | { readonly type: 'leads' }
  | {
      readonly type: 'loaded'
      readonly commits: number
      readonly seconds: number
      readonly p50Ms: number
      readonly p99Ms: number
    }
  | { readonly type: 'failed'; readonly reason: string }

function answer(message: MemberAnswer): void {
  process.send?.(message)
}

let clusterNode: ClusterNode | null = null
let stop: () => Promise<void> = () => Promise.resolve()

async function start(dir: string, host: ConsensusOptions): Promise<void> {
  const started = await startThreads({ dir, log: {}, host })
  const machine = new CounterMachine({ persistEntries: 100_000, isChained: false })
  const silent = (): void => undefined
  const say = (_fields: object, message: string): void =>
    console.error(`${host.selfId}: ${message}`)
  const made = new ClusterNode(
    {
      ...defaultClusterNodeOptions,
      lowSpaceBytes: 0,
      self: {
        id: host.selfId,
        version: host.version,
        startedAtMs: host.startedAtMs,
        apiAddresses: [],
        certificatePem: '',
      },
      clusterId: host.clusterId,
      generation: host.generation,
      storeId: host.storeId,
      boot: started.boot,
    },
    {
      link: started.link,
      machine,
      clock: systemClock,
      log: { debug: silent, info: silent, warn: silent, error: say },
      onFatal: (error) => answer({ type: 'failed', reason: error.message }),
    },
  )
  clusterNode = made
  await made.start()
  stop = async () => {
    clearInterval(watch)
    await made.stop()
    await started.close()
  }
  let isLeading = false
  const watch = setInterval(() => {
    const leads = made.status().role === 'leader'
    if (leads && !isLeading) answer({ type: 'leads' })
    isLeading = leads
  }, 20)
}

/**
 * Runs proposers. Each waits until its entry is committed and applied on this member before it
 * proposes the next one.
 */
async function load(proposers: number, seconds: number, payloadBytes: number): Promise<void> {
  const target = clusterNode
  if (target === null) throw new Error('not started')
  const latencies: number[] = []
  const beginMs = performance.now()
  const endMs = beginMs + seconds * 1000
  const input = {
    kind: CommandKind.ENTITY_CREATE,
    payload: new Uint8Array(payloadBytes).fill(7),
    actor: SYSTEM_ACTOR,
  }
  const propose = async (): Promise<void> => {
    for (let beforeMs = beginMs; beforeMs < endMs;) {
      await target.propose(input)
      const nowMs = performance.now()
      latencies.push(nowMs - beforeMs)
      beforeMs = nowMs
    }
  }
  await Promise.all(Array.from({ length: proposers }, propose))
  const tookSeconds = (performance.now() - beginMs) / 1000
  const sorted = Float64Array.from(latencies).sort()
  const at = (q: number): number => sorted[Math.floor((sorted.length - 1) * q)] ?? NaN
  answer({
    type: 'loaded',
    commits: latencies.length,
    seconds: tookSeconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
  })
}

async function handle(command: MemberCommand): Promise<void> {
  switch (command.type) {
    case 'start':
      await start(command.dir, command.host)
      break
    case 'load':
      await load(command.proposers, command.seconds, command.payloadBytes)
      break
    case 'stop':
      await stop()
      process.disconnect()
      break
  }
}

process.on('message', (command: MemberCommand) => {
  handle(command).catch((error: unknown) => answer({ type: 'failed', reason: String(error) }))
})
// Exits when the parent process has ended.
process.on('disconnect', () => process.exit())
