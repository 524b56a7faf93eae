import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { create, toBinary } from '@bufbuild/protobuf'
import { afterEach, expect, test } from 'vitest'

import { RaftCluster } from '../../bench/support/raft-cluster.ts'
import { CounterMachine } from '../../bench/support/counter-machine.ts'
import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { ClusterNode } from '../../src/cluster/cluster-node.ts'
import { defaultClusterNodeOptions } from '../../src/cluster/cluster-node-deps.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createDataFolder } from '../../src/store/folder/create-data-folder.ts'
import {
  type LogAndConsensusStart,
  type StartedLogAndConsensus,
  startInCallingThread,
  startThreads,
} from '../../src/threads/start-threads.ts'
import { command } from './cluster-fixture.ts'
import {
  CLUSTER_ID,
  controllerIdentity,
  createAuthority,
  memberOf,
  RecordedLog,
  storeIdOf,
  TRUST_DOMAIN,
  until,
} from './mesh-fixture.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'flotilla-threads-'))
  folders.push(folder)
  return folder
}

/** The data folder of a new cluster with one controller, and the inputs to start its threads. */
async function formedHost(): Promise<LogAndConsensusStart> {
  const dir = join(newFolder(), 'data')
  const identity = await controllerIdentity(await createAuthority(), 'n1')
  const members = [memberOf('n1', identity, '127.0.0.1:1')]
  const data = toBinary(ConfigurationSchema, create(ConfigurationSchema, { members }))
  createDataFolder(
    dir,
    {
      nodeId: 'n1',
      storeId: storeIdOf('n1'),
      clusterId: CLUSTER_ID,
      generation: 1,
      entries: [{ index: 1, term: 1, timeMs: 1, type: 'configuration', data }],
    },
    { freeBytesMin: 0 },
  )
  return {
    dir,
    log: { freeBytesMin: 0, statePosition: null },
    host: {
      selfId: 'n1',
      clusterId: CLUSTER_ID,
      generation: 1,
      storeId: storeIdOf('n1'),
      trustDomain: TRUST_DOMAIN,
      identity,
      bind: '127.0.0.1:0',
      advertise: '127.0.0.1:1',
      addressHints: [],
      version: '1.0.0',
      startedAtMs: Date.now(),
      apiAddresses: [],
      applied: { term: 0, index: 0 },
      appliedTimeMs: 0,
      configuration: new Uint8Array(0),
    },
  }
}

function clusterNodeOf(start: LogAndConsensusStart, started: StartedLogAndConsensus) {
  const machine = new CounterMachine({ persistEntries: 1000, isChained: true })
  const effects: string[] = []
  machine.onCommand = (payload) => effects.push(new TextDecoder().decode(payload))
  const fatal: string[] = []
  const clusterNode = new ClusterNode(
    {
      ...defaultClusterNodeOptions,
      lowSpaceBytes: 0,
      self: {
        id: 'n1',
        version: '1.0.0',
        startedAtMs: start.host.startedAtMs,
        apiAddresses: [],
        certificatePem: '',
      },
      clusterId: CLUSTER_ID,
      generation: 1,
      storeId: start.host.storeId,
      boot: started.boot,
    },
    {
      link: started.link,
      machine,
      clock: systemClock,
      log: new RecordedLog().log,
      onFatal: (error) => fatal.push(error.message),
    },
  )
  return { clusterNode, effects, fatal }
}

test('the WAL thread reports the latency of its disk syncs, and the Raft thread the number of accepted proposals', async () => {
  const start = await formedHost()
  const started = await startThreads(start)
  const { clusterNode } = clusterNodeOf(start, started)
  try {
    await clusterNode.start()
    await until('it leads', () => clusterNode.status().role === 'leader')
    await clusterNode.propose(command('one'))
    await until('syncs and the write were counted', () => {
      const { disk, proposalsAccepted } = clusterNode.vitals
      return disk.fsync.count > 0 && proposalsAccepted > 0
    })
    const { disk, proposalsAccepted } = clusterNode.vitals
    expect(disk.writtenBytes).toBeGreaterThan(0)
    expect(disk.freeBytes ?? 0).toBeGreaterThan(0)
    expect(disk.fsync.sumMs).toBeGreaterThan(0)
    expect(proposalsAccepted).toBe(1)
  } finally {
    await clusterNode.stop()
    await started.close()
  }
})

test('acknowledged writes exist after a restart, with separate threads and with one thread', async () => {
  const start = await formedHost()
  const expected: string[] = []
  for (const [round, open] of [startThreads, startInCallingThread, startThreads].entries()) {
    const started = await open(start)
    expect(started.boot).toBe(round + 1)
    const { clusterNode, effects, fatal } = clusterNodeOf(start, started)
    await clusterNode.start()
    await until('it leads', () => clusterNode.status().role === 'leader')
    const texts = Array.from({ length: 20 }, (_, i) => `${round}-${i}`)
    await Promise.all(texts.map(async (text) => await clusterNode.propose(command(text))))
    expected.push(...texts)
    expect(effects).toEqual(expected)
    await clusterNode.stop()
    await started.close()
    expect(fatal).toEqual([])
  }
})

test('the threads of a controller do not start if its log cannot be opened, and the error contains the reason', async () => {
  const start = await formedHost()
  const wal = join(start.dir, 'wal')
  const segment = readdirSync(wal).find((name) => name.endsWith('.seg')) ?? ''
  writeFileSync(join(wal, segment), 'this is no segment')
  await expect(startThreads(start)).rejects.toMatchObject({ name: 'StoreError', code: 'CORRUPT' })
})

test('a controller that cannot listen on an address reports one fatal error with this address', async () => {
  const start = await formedHost()
  const bind = '203.0.113.1:1'
  const started = await startThreads({ ...start, host: { ...start.host, bind } })
  const { clusterNode, fatal } = clusterNodeOf(start, started)
  void clusterNode.start()
  await until('it is reported', () => fatal.length > 0)
  expect(fatal).toEqual([expect.stringContaining(`cannot listen on ${bind} for peers`)])
  await started.close()
})

test('a controller whose thread ends unexpectedly reports one fatal error that names the thread', async () => {
  const start = await formedHost()
  const started = await startThreads(start)
  const { clusterNode, fatal } = clusterNodeOf(start, started)
  await clusterNode.start()
  await until('it leads', () => clusterNode.status().role === 'leader')
  await started.close()
  await until('it is reported', () => fatal.length > 0)
  expect(fatal).toEqual([expect.stringMatching(/^the (log|consensus) thread has ended/)])
})

test('the engine benchmark runs with three processes that commit under load', async () => {
  const cluster = await RaftCluster.start(newFolder(), 3)
  try {
    const loaded = await cluster.load(4, 0.3, 300)
    expect(loaded.commits).toBeGreaterThan(0)
    expect(loaded.p99Ms).toBeGreaterThanOrEqual(loaded.p50Ms)
  } finally {
    await cluster.stop()
  }
})
