import { readdirSync } from 'node:fs'

import { afterEach, expect, test } from 'vitest'

import type { SnapshotAck, SnapshotChunk } from '../../proto/gen/mesh_pb.ts'
import { Alarms } from '../../src/cluster/health/alarms.ts'
import { SnapshotLogRetention } from '../../src/cluster/state-transfer/snapshot-log-retention.ts'
import {
  type ConsensusThreadCommand,
  type ConsensusThreadLink,
  createSameThreadChannel,
  type MainThreadLink,
} from '../../src/cluster/thread-channel.ts'
import { SnapshotStoreWorker } from '../../src/cluster/state-transfer/snapshot-store-worker.ts'
import {
  defaultSnapshotReceiverOptions,
  type ReceivedSnapshot,
  SnapshotReceiver,
} from '../../src/cluster/state-transfer/snapshot-receiver.ts'
import { SnapshotSender } from '../../src/cluster/state-transfer/snapshot-sender.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { StorePosition } from '../../src/ports/state-store.ts'
import { nodeFileSystem } from '../../src/store/file-system.ts'
import { LevelStateStore } from '../../src/store/state/level-state-store.ts'
import { temporaryFolder } from '../store/support/folders.ts'
import { RecordedLog, until } from './mesh-fixture.ts'
import { configuration } from './snapshot-fixture.ts'

// Goal: a snapshot is copied from one real store to another over a connection that breaks or
// corrupts data. Method: sender, receiver and sources as a controller has them; only the connection
// between them is simulated.

const WINDOW_CHUNKS = 4
const recordsOfSource = Array.from({ length: 4000 }, (_, number) => ({
  key: `k${String(number).padStart(5, '0')}`,
  value: `${number} `.repeat(10),
}))

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

function markAt(index: number, changes: Partial<StorePosition> = {}): StorePosition {
  const common = { timeMs: index, featureLevel: 1, digest: '', entitiesDigest: '' }
  const text = Buffer.from(configuration).toString('base64')
  return { position: { term: 1, index }, configuration: text, ...common, ...changes }
}

async function side(free: { bytes: number }) {
  const dir = temporaryFolder()
  const files = { ...nodeFileSystem, freeBytes: () => free.bytes }
  const options = { chunkBytes: 4096, receiveBatchBytes: 8192, freeBytesMin: 1000, files }
  const store = await LevelStateStore.open(dir, options)
  const { main, host } = createSameThreadChannel()
  const alarms = new Alarms(systemClock, new RecordedLog().log)
  const machine = {
    progress: () => ({ applied: 0, persisted: store.mark()?.position.index ?? 0 }),
    snapshot: async () => await store.snapshot(),
    receive: async () => await store.receive(),
    restore: async (receiver: { swap: () => Promise<void> }) => await receiver.swap(),
  }
  const desk = new SnapshotStoreWorker(machine, main, {
    catchUps: new SnapshotLogRetention(alarms, systemClock, () => true),
    guard: { isQuarantined: false, makeRoom: () => Promise.resolve() },
  })
  ends.push(async () => {
    desk.close()
    main.close()
    await store.close()
  })
  const halves = (): string[] => readdirSync(`${dir}/state`).sort()
  return { store, desk, main, host, halves }
}

/**
 * Passes events to the snapshot source, except `restore`, which the cluster node handles as in a
 * controller.
 */
function serve(main: MainThreadLink, desk: SnapshotStoreWorker): void {
  main.onMessage = (event) => {
    if (event.type === 'restore') void desk.restore(event.id)
    else desk.handle(event as Parameters<SnapshotStoreWorker['handle']>[0])
  }
}

function onCommands(
  host: ConsensusThreadLink,
  take: (command: ConsensusThreadCommand) => void,
): void {
  host.onMessage = take
}

async function rig() {
  const space = { bytes: Number.MAX_SAFE_INTEGER }
  const from = await side({ bytes: Number.MAX_SAFE_INTEGER })
  const to = await side(space)
  await from.store.write(recordsOfSource, markAt(9))
  await to.store.write([{ key: 'old', value: 'state' }], markAt(3))
  const wire = { isUp: true, alter: (chunk: SnapshotChunk): SnapshotChunk | null => chunk }
  const sent: SnapshotChunk[] = []
  const done: string[] = []
  const failures: string[] = []
  const received: ReceivedSnapshot[] = []
  /**
   * Delivers data only while the same connection is open: when it breaks, data in transit is lost.
   */
  let connection = 1
  const over = (work: () => void): boolean => {
    const mine = connection
    setImmediate(() => {
      if (mine === connection && wire.isUp) work()
    })
    return wire.isUp
  }
  const sender: SnapshotSender = new SnapshotSender(
    { windowChunks: WINDOW_CHUNKS, silenceMsMax: 60_000, bytesPerSecond: Infinity },
    {
      clock: systemClock,
      post: (event) => from.host.post(event),
      send: (_to, term, chunk) => {
        if (!wire.isUp) return false
        sent.push(chunk)
        const altered = wire.alter(chunk)
        return altered === null || over(() => receiver.onChunk('leader', term, altered))
      },
      onDone: (_to, outcome) => done.push(outcome),
      onSuspended: () => undefined,
    },
  )
  const receiver: SnapshotReceiver = new SnapshotReceiver(defaultSnapshotReceiverOptions, {
    clock: systemClock,
    leadership: () => ({ term: 1, leader: 'leader' }),
    post: (event) => to.host.post(event),
    send: (_to, _term, ack: SnapshotAck) => void over(() => sender.onAck('slow', ack)),
    onReceived: (snapshot) => {
      received.push(snapshot)
      void receiver.restore(snapshot.position)
    },
    onFailed: (_from, reason) => failures.push(reason),
  })
  serve(from.main, from.desk)
  serve(to.main, to.desk)
  onCommands(from.host, (command) => {
    const { type } = command
    if (type === 'snapshotOpened')
      sender.onOpened(command.id, command.position, command.configuration)
    if (type === 'snapshotChunk') sender.onChunk(command.id, command.data, command.isLast)
    if (type === 'snapshotFailed') sender.onSourceFailed(command.id, command.reason)
  })
  onCommands(to.host, (command) => {
    const { type } = command
    if (type === 'receiveWritten') receiver.onWritten(command.id)
    if (type === 'receiveFinished')
      receiver.onFinished(command.id, command.position, command.configuration)
    if (type === 'receiveFailed') receiver.onSourceFailed(command.id, command.reason)
    if (type === 'restored') receiver.onRestored(command.id)
  })
  const breakOff = (): void => {
    wire.isUp = false
    connection += 1
    sender.onLinkLost('slow')
  }
  const reconnect = (): void => {
    wire.isUp = true
    sender.onLinkReady('slow')
    receiver.onLinkReady('leader')
  }
  return { from, to, wire, sent, done, failures, received, space, sender, breakOff, reconnect }
}

async function contents(store: LevelStateStore): Promise<string[]> {
  const found: string[] = []
  for await (const { key, value } of store.records()) found.push(`${key}=${value}`)
  return found
}

const whole = recordsOfSource.map(({ key, value }) => `${key}=${value}`)

test('a snapshot transfer with repeatedly broken connections resumes at its last position, and completes', async () => {
  const { to, from, wire, sent, done, sender, breakOff, reconnect } = await rig()
  // Breaks the connection at every eighth chunk, so that the number of breaks does not depend on
  // the speed of the machine.
  wire.alter = (chunk) => {
    if (sent.length % 8 === 0) wire.isUp = false
    return chunk
  }
  sender.start('slow', 1)
  let breaks = 0
  while (done.length === 0) {
    await until('the wire is down, or all was sent', () => !wire.isUp || done.length > 0)
    if (done.length > 0) break
    breakOff()
    breaks += 1
    // Writes during the transfer do not change the snapshot that is being sent.
    await from.store.write([{ key: `later${breaks}`, value: 'x' }], markAt(9 + breaks))
    reconnect()
  }
  expect(done).toEqual(['sent'])
  expect(breaks).toBeGreaterThan(5)
  expect(await contents(to.store)).toEqual(whole)
  expect(to.store.mark()?.position).toEqual({ term: 1, index: 9 })
  const chunks = new Set(sent.map(({ number }) => number)).size
  expect(sent.length).toBeLessThanOrEqual(chunks + breaks * WINDOW_CHUNKS)
  expect(new Set(sent.map(({ snapshotId }) => Buffer.from(snapshotId).toString('hex'))).size).toBe(
    1,
  )
})

test.each<[string, (chunk: SnapshotChunk) => SnapshotChunk | null, RegExp]>([
  ['a flipped bit', (chunk) => flipped(chunk), /chunk 20 is damaged/],
  [
    'a lost chunk',
    (chunk) => (chunk.number === 20 ? null : chunk),
    /received chunk 21, expected 20/,
  ],
  [
    'a position that differs from the state',
    (chunk) =>
      Object.assign(chunk, chunk.position && { position: { ...chunk.position, index: 8n } }),
    /does not match its announcement/,
  ],
  [
    'an early last chunk',
    (chunk) => (chunk.number === 20 ? { ...chunk, last: true } : chunk),
    /checksum mismatch/,
  ],
])(
  'a snapshot transfer with %s is refused, changes no state, and leaves no files',
  async (...row) => {
    const [, alter, reason] = row
    const { to, wire, done, failures, received, sender } = await rig()
    wire.alter = alter
    sender.start('slow', 1)
    await until('it is given up', () => done.length > 0)
    expect(done).toEqual(['failed'])
    expect(failures).toEqual([expect.stringMatching(reason)])
    expect(received).toEqual([])
    await until('nothing is left', () => to.halves().join() === 'A,CURRENT')
    expect(await contents(to.store)).toEqual(['old=state'])
    wire.alter = (chunk) => chunk
    sender.start('slow', 1)
    await until('the next one is installed', () => done.length > 1)
    expect(await contents(to.store)).toEqual(whole)
  },
)

function flipped(chunk: SnapshotChunk): SnapshotChunk {
  if (chunk.number !== 20) return chunk
  const data = Uint8Array.from(chunk.data)
  data[0] = (data[0] ?? 0) ^ 1
  return { ...chunk, data }
}

test('a receiver of a snapshot refuses chunks when only the reserved space of the disk is left', async () => {
  const { to, wire, done, failures, space, sender } = await rig()
  wire.alter = (chunk) => {
    if (chunk.number === 20) space.bytes = 1999
    return chunk
  }
  sender.start('slow', 1)
  await until('it is given up', () => done.length > 0)
  expect(failures).toEqual([expect.stringContaining('less than log.lowSpaceBytes')])
  await until('nothing is left', () => to.halves().join() === 'A,CURRENT')
  expect(await contents(to.store)).toEqual(['old=state'])
})

test('a snapshot that replaces an incomplete snapshot is received at the first attempt', async () => {
  const { to, wire, sent, done, failures, sender } = await rig()
  sender.start('slow', 1)
  wire.alter = (chunk) => (chunk.number < 20 ? chunk : null)
  await until('some of it was sent', () => sent.length > 20)
  sender.abandonOtherThan(2)
  wire.alter = (chunk) => chunk
  sender.start('slow', 2)
  await until('the second is installed', () => done.length > 1)
  expect(done).toEqual(['failed', 'sent'])
  expect(failures).toEqual(['superseded by another snapshot'])
  expect(await contents(to.store)).toEqual(whole)
})
