import { raftProfiles } from '../../src/config/controller/raft-profiles.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import { defaultCoreOptions } from '../../src/raft/options.ts'
import { drawPlan, type Plan } from './plan.ts'
import { simulate } from './simulate.ts'
import { makeKeyring } from './worker.ts'

// Three controllers with 200 ms of one-way delay between them and a writing client. 5 % of their
// messages are lost and sent again by TCP. Prints one line of JSON. `node test/sim/wan.ts lan|wan
// MINUTES SEED`.

const TICK_MS = 50
const CLIENTS = 1
const THINK_MS_MAX = 1_000
/** The round trip time plus the shortest retransmission wait that Linux adds to it. */
const RESEND_MS = 400 + 200

const [profile = 'wan', minutes = '10', seed = '1'] = process.argv.slice(2)
const { heartbeatMs, electionTimeoutMs, electionTimeoutMaxMs } =
  raftProfiles[profile === 'lan' ? 'lan' : 'wan']
const ticks = (ms: number | undefined, otherwise: number): number =>
  ms === undefined ? otherwise : ms / TICK_MS

const defaults = defaultCoreOptions
const plan: Plan = {
  ...drawPlan(Number(seed)),
  voters: 3,
  learners: 0,
  faultyMs: Number(minutes) * 60_000,
  faultySteps: Infinity,
  events: [],
  clockOffsetsMs: Array<number>(9).fill(0),
  isWired: false,
  rates: {
    lossChance: 0.05,
    resendMs: RESEND_MS,
    repeatChance: 0,
    lateChance: 0,
    resetChance: 0,
    delayMsMin: 190,
    delayMsMax: 210,
    syncMsMax: 5,
    slowDiskChance: 0,
    storeMsMax: 20,
    applyMsMax: 0,
    chunkMsMax: 5,
  },
  load: {
    clients: CLIENTS,
    thinkMsMax: THINK_MS_MAX,
    readShare: 0,
    bodyBytesMax: 400,
    retryShare: 0,
  },
  core: {
    ...defaults,
    heartbeatTicks: ticks(heartbeatMs, defaults.heartbeatTicks),
    electionTimeoutTicks: ticks(electionTimeoutMs, defaults.electionTimeoutTicks),
    electionTimeoutTicksMax: ticks(electionTimeoutMaxMs, defaults.electionTimeoutTicksMax),
  },
  clusterNode: {
    retention: { entries: 2_000, bytes: 1024 * 1024, catchUpBytes: 4096 * 1024, everyEntries: 64 },
    outstandingMax: 4_096,
  },
}
const result = await simulate(plan, await makeKeyring())
if (!result.ok) throw new Error(JSON.stringify(result.failure))
const { counts, acknowledged, virtualMs } = result
const elections = requirePresent(counts['election won'], 'a cluster has a first leader')
const writeMs = (CLIENTS * virtualMs) / acknowledged - THINK_MS_MAX / 2
console.log(
  JSON.stringify({ profile, seed, elections, acknowledged, writeMs: Math.round(writeMs) }),
)
