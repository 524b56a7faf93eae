import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, expect, test } from 'vitest'

import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { CounterMachine } from '../../bench/support/counter-machine.ts'
import { Alarms } from '../../src/cluster/health/alarms.ts'
import { SnapshotLogRetention } from '../../src/cluster/state-transfer/snapshot-log-retention.ts'
import { ClusterNode } from '../../src/cluster/cluster-node.ts'
import { defaultClusterNodeOptions } from '../../src/cluster/cluster-node-deps.ts'
import {
  type ConsensusThreadCommand,
  type ConsensusThreadStatus,
  createSameThreadChannel,
  type PeerReport,
} from '../../src/cluster/thread-channel.ts'
import { LogRetention } from '../../src/cluster/state-transfer/log-retention.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { ZERO_CONSENSUS_STATS } from '../../src/ports/stats.ts'
import { ENTRY_HEADER_BYTES, encodeEntries } from '../../src/raft/entry-codec.ts'
import type { Entry, Index, Role } from '../../src/raft/types.ts'
import { CLUSTER_ID, RecordedLog, storeIdOf, until } from './mesh-fixture.ts'
import { ManualClock } from './snapshot-fixture.ts'

const ENTRY_BYTES = 100

function entry(index: number, bytes = ENTRY_BYTES): Entry {
  const data = new Uint8Array(bytes - ENTRY_HEADER_BYTES)
  return { index, term: 1, timeMs: index, type: 'noop', data }
}

function noted(options: ConstructorParameters<typeof LogRetention>[0], entries = 10_000) {
  const retention = new LogRetention(options)
  for (let index = 1; index <= entries; index += 1) retention.note(entry(index))
  return retention
}

const small = { entries: 1000, bytes: 200_000, catchUpBytes: 500_000 }

test('the log is compacted up to the persisted index, but keeps its last entries, and also those that a slow peer still needs', () => {
  const retention = noted({ entries: 1000, bytes: 1_000_000, catchUpBytes: 0 })
  const isJustBefore = (index: Index | undefined, end: Index): boolean =>
    index !== undefined && index <= end && index > end - 256
  expect(isJustBefore(retention.cut(2000, Infinity)?.index, 2000)).toBe(true)
  expect(retention.cut(2000, Infinity)).toBeNull()
  expect(isJustBefore(retention.cut(9999, 3000)?.index, 3000)).toBe(true)
  expect(isJustBefore(retention.cut(9999, Infinity)?.index, 9000)).toBe(true)
})

test('for a slow peer, the leader retains at most the allowed bytes plus one step of compaction', () => {
  const cut = noted(small).cut(9999, 1)
  expect(cut?.index).toBeGreaterThan(8000 - 256)
  expect(cut?.index).toBeLessThanOrEqual(8000)
})

test('during a snapshot transfer, the entries after the snapshot are retained longer than otherwise, up to a separate limit', () => {
  const needed = noted(small).cut(9999, Infinity, 7000)?.index
  expect(needed).toBeLessThanOrEqual(7000)
  expect(needed).toBeGreaterThan(7000 - 256)
  const outgrown = noted(small).cut(9999, Infinity, 1000)
  expect(outgrown?.index).toBeGreaterThan(5000 - 256)
  expect(outgrown?.index).toBeLessThanOrEqual(5000)
  // A lower limit for transfers does not reduce the normal retention.
  expect(noted({ ...small, catchUpBytes: 0 }).cut(9999, 1)?.index).toBeGreaterThan(7000)
})

test('large entries are compacted one by one, not in groups', () => {
  const retention = new LogRetention({ entries: 10, bytes: 4_000_000, catchUpBytes: 0 })
  for (let index = 1; index <= 100; index += 1) retention.note(entry(index, 1_100_000))
  expect(retention.cut(100, 1)?.index).toBe(96)
})

test('a peer counts as nearly caught up when it lacks at most half of the normally retained log', () => {
  const retention = noted(small)
  expect(retention.isNear(10_000)).toBe(true)
  expect(retention.isNear(9300)).toBe(true)
  expect(retention.isNear(8500)).toBe(false)
  expect(retention.isNear(0)).toBe(false)
})

function status(peers: readonly (readonly [string, number | null])[], role: Role = 'leader') {
  const told: ConsensusThreadStatus = {
    role,
    term: 1,
    leader: 'n1',
    leaderSilentMs: 0,
    commit: 0,
    last: 0,
    owed: null,
    configuration: new Uint8Array(0),
    configurationIndex: 1,
    isConfigurationCommitted: true,
    peers: peers.map(([id, matchIndex]) => peer(id, { matchIndex })),
    vitals: ZERO_CONSENSUS_STATS,
  }
  return told
}

function peer(id: string, changes: Partial<PeerReport> = {}): PeerReport {
  return {
    id,
    address: '',
    isConnected: true,
    silentMs: 0,
    version: '',
    startedAtMs: 1,
    apiAddresses: [],
    certificatePem: '',
    featureLevel: 1,
    matchIndex: 0,
    ...changes,
  }
}

function catchUps(nearFrom: Index) {
  const clock = new ManualClock()
  const alarms = new Alarms(clock, new RecordedLog().log)
  const made = new SnapshotLogRetention(alarms, clock, (index) => index >= nearFrom)
  const isOutrun = (): boolean => alarms.list().some(({ code }) => code === 'SNAPSHOT_LAGGING')
  return { made, clock, isOutrun }
}

test('the log entries after a snapshot are retained during its transfer, and afterwards from the receiver’s match index on', () => {
  const { made } = catchUps(900)
  expect(made.neededAfter).toBe(Infinity)
  made.begin(1, 'n2', 100)
  made.opened(1, 120)
  made.begin(2, 'n3', 300)
  expect(made.neededAfter).toBe(120)
  // The match index of the second report is lower, but the log keeps no older entries for it,
  // because they were compacted.
  made.look(
    status([
      ['n2', 50],
      ['n3', 0],
    ]),
  )
  expect(made.neededAfter).toBe(120)
  made.over(1, true)
  made.look(
    status([
      ['n2', 400],
      ['n3', 0],
    ]),
  )
  expect(made.neededAfter).toBe(300)
  made.over(2, false)
  expect(made.neededAfter).toBe(400)
  made.look(status([['n2', 900]]))
  expect(made.neededAfter).toBe(Infinity)
})

test('log compaction does not wait for a member without progress, a former member or a member that follows another leader', () => {
  const { made, clock } = catchUps(900)
  const begun = (): void => {
    made.begin(1, 'n2', 100)
    made.over(1, true)
    expect(made.neededAfter).toBe(100)
  }
  begun()
  clock.atMs = 60_000
  made.look(status([['n2', 0]]))
  expect(made.neededAfter).toBe(100)
  clock.atMs = 60_001
  made.look(status([['n2', 0]]))
  expect(made.neededAfter).toBe(Infinity)
  begun()
  made.look(status([['n3', 0]]))
  expect(made.neededAfter).toBe(Infinity)
  begun()
  made.look(status([['n2', null]], 'follower'))
  expect(made.neededAfter).toBe(Infinity)
})

test('a log that exceeds its limit during a snapshot transfer raises an alarm, which stays during the next transfer until the receiver follows the log', () => {
  const { made, isOutrun } = catchUps(900)
  made.begin(1, 'n2', 100)
  made.noteCut(100)
  expect(isOutrun()).toBe(false)
  made.noteCut(101)
  expect(isOutrun()).toBe(true)
  made.over(1, true)
  made.begin(2, 'n2', 200)
  made.opened(2, 200)
  made.over(2, true)
  made.look(status([['n2', 200]]))
  expect(isOutrun()).toBe(true)
  made.look(status([['n2', 900]]))
  expect(isOutrun()).toBe(false)
})

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

/**
 * A real cluster node and state machine with a simulated Raft thread, because only its reports
 * about peers matter here.
 */
function clusterNode() {
  const { main, host } = createSameThreadChannel()
  const machine = new CounterMachine({ persistEntries: 512, isChained: false })
  const commands: ConsensusThreadCommand[] = []
  host.onMessage = (command) => {
    commands.push(command)
    if (command.type === 'start') host.post({ type: 'started', port: 1 })
    if (command.type === 'stop') host.post({ type: 'stopped' })
  }
  const made = new ClusterNode(
    {
      ...defaultClusterNodeOptions,
      lowSpaceBytes: 0,
      self: {
        id: 'n1',
        version: '',
        startedAtMs: 1,
        apiAddresses: [],
        certificatePem: '',
      },
      clusterId: CLUSTER_ID,
      generation: 1,
      storeId: storeIdOf('n1'),
      boot: 1,
      retention: small,
    },
    {
      link: main,
      machine,
      clock: systemClock,
      log: new RecordedLog().log,
      onFatal: () => undefined,
    },
  )
  ends.push(async () => await made.stop())
  let last = 0
  const commit = async (count: number): Promise<void> => {
    const entries = Array.from({ length: count }, (_, at) => entry(last + 1 + at))
    last += count
    host.post({ type: 'committed', entries: encodeEntries(entries) })
    await until('all is applied', () => machine.progress().applied === last)
    await until(
      'everything persisted is reported',
      () => persisted === machine.progress().persisted,
    )
  }
  const onPersisted = machine.onPersisted.bind(machine)
  let persisted = 0
  machine.onPersisted = (position) => {
    onPersisted(position)
    persisted = position.index
  }
  const cutAt = (): Index => {
    const cuts = commands.filter((command) => command.type === 'compact')
    return cuts.at(-1)?.position.index ?? 0
  }
  return { made, host, machine, commands, commit, cutAt }
}

const members = (learners: readonly string[]): Uint8Array =>
  toBinary(
    ConfigurationSchema,
    create(ConfigurationSchema, {
      members: ['n1', ...learners].map((id) => ({ id, voter: id === 'n1' })),
    }),
  )

test('the leader retains the log for a connected learner that is catching up, and not for a disconnected one', async () => {
  const { made, host, commit, cutAt } = clusterNode()
  await made.start()
  const told = { ...status([['n2', 0]]), configuration: members(['n2']) }
  host.post({ type: 'status', ...told })
  await commit(1536)
  // The leader knows nothing about the peer yet, so the peer may need all entries.
  expect(cutAt()).toBe(0)
  host.post({ type: 'status', ...told, peers: [peer('n2', { isConnected: false })] })
  await commit(512)
  await until('the log is cut', () => cutAt() === 1024)
})

test('the log entries after a snapshot are retained from the request for the snapshot until the receiver follows the log', async () => {
  const { made, host, commands, commit, cutAt } = clusterNode()
  await made.start()
  const told = { ...status([['n2', 0]]), configuration: members(['n2']) }
  const away = { ...told, peers: [peer('n2', { isConnected: false })] }
  host.post({ type: 'status', ...away })
  await commit(2048)
  await until('the log is cut', () => cutAt() === 1024)
  host.post({ type: 'snapshotWanted', id: 7, to: 'n2' })
  await until('it is open', () => commands.some(({ type }) => type === 'snapshotOpened'))
  await commit(2048)
  // Entries of 204,800 bytes were applied, which exceeds the normal retention.
  await until('the log is cut up to the snapshot', () => cutAt() === 2048)
  host.post({ type: 'snapshotOver', id: 7, isSent: true })
  host.post({ type: 'status', ...away })
  await commit(512)
  expect(cutAt()).toBe(2048)
  const follows = peer('n2', { isConnected: false, matchIndex: 4608 })
  host.post({ type: 'status', ...away, peers: [follows] })
  await commit(512)
  await until('the log is cut again', () => cutAt() > 4000)
})
