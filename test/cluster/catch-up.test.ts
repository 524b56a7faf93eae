import { afterEach, expect, test } from 'vitest'

import {
  command,
  formCluster,
  type StartChanges,
  type TestCluster,
  type TestNode,
} from './cluster-fixture.ts'
import { until } from './mesh-fixture.ts'
import { Relay } from './relay.ts'
import { freePort } from '../support/ports.ts'

// Goal: a member whose next entry was compacted catches up while clients write, in spite of
// failures. Method: two controllers that keep very few log entries, and a third one that starts
// late.

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const PADDING_BYTES = 3_000_000
const BYTES_PER_SECOND = 1_500_000

interface Stage {
  readonly formed: TestCluster
  readonly leader: TestNode
  readonly changes: StartChanges
}

/** Writes 1,000 entries, of which the log keeps only 100. */
async function stage(catchUpBytes: number): Promise<Stage> {
  const formed = await formCluster(3)
  ends.push(async () => await formed.stop())
  const changes: StartChanges = {
    persistEntries: 300,
    snapshotBytesPerSecond: BYTES_PER_SECOND,
    clusterNode: { retention: { entries: 100, bytes: 20_000, catchUpBytes } },
  }
  await formed.start('n1', changes)
  await formed.start('n2', changes)
  const leader = await formed.leader()
  for (const { machine } of formed.nodes.values()) machine.snapshotPaddingBytes = PADDING_BYTES
  for (let i = 0; i < 20; i += 1) {
    const batch = Array.from({ length: 50 }, (_, k) => command(`${i}-${k}`))
    await Promise.all(batch.map(async (input) => await leader.clusterNode.propose(input)))
  }
  return { formed, leader, changes }
}

/** Proposes entries of about 100 bytes until stopped. */
function writing(node: TestNode): { readonly count: () => number; stop: () => Promise<void> } {
  let count = 0
  let isOver = false
  const runs = Array.from({ length: 8 }, async (_, worker) => {
    for (let i = 0; !isOver; i += 1) {
      await node.clusterNode.propose(command(`during-${worker}-${i}`))
      count += 1
    }
  })
  const stop = async (): Promise<void> => {
    isOver = true
    await Promise.all(runs)
  }
  ends.push(stop)
  return { count: () => count, stop }
}

const received = (node: TestNode): number =>
  node.log.lines.filter((line) => /received snapshot at index \d+/.test(line)).length

const outrun = ({ clusterNode }: TestNode): boolean =>
  clusterNode.status().alarms.some(({ code }) => code === 'SNAPSHOT_LAGGING')

async function agree(formed: TestCluster): Promise<void> {
  await until('all agree', () => {
    const digests = formed.ids.map((id) => formed.node(id).machine.digests())
    return digests.every(({ index, state }) => {
      return index === digests[0]?.index && state === digests[0].state
    })
  })
}

test('a member that lags needs only one snapshot, even if the transfer takes longer than the log is normally retained', async () => {
  const { formed, leader, changes } = await stage(50_000_000)
  const writer = writing(leader)
  const late = await formed.start('n3', changes)
  await until('it has the snapshot', () => received(late) > 0)
  // Several times the normal retention; without the additional retention, the entries would be
  // gone.
  expect(writer.count()).toBeGreaterThan(300)
  await until('it follows', () => late.machine.count >= leader.machine.count - 100)
  const seen = writer.count()
  await until('it still follows', () => writer.count() > seen + 500)
  expect(received(late)).toBe(1)
  expect(outrun(leader)).toBe(false)
  await writer.stop()
  await agree(formed)
})

test('a log that exceeds its limit during a snapshot transfer raises an alarm, which clears once the receiver follows the log again', async () => {
  const { formed, leader, changes } = await stage(40_000)
  const writer = writing(leader)
  const late = await formed.start('n3', changes)
  await until('the alarm is on', () => outrun(leader))
  await until('it has had a second snapshot begun', () => received(late) > 0)
  await writer.stop()
  await until('the alarm is off', () => !outrun(leader))
  expect(received(late)).toBeGreaterThan(1)
  await agree(formed)
})

test('a snapshot transfer resumes after broken connections in either direction, without a second snapshot', async () => {
  const { formed, leader, changes } = await stage(50_000_000)
  const ahead = formed.member('n3').address
  const behind = `127.0.0.1:${await freePort()}`
  const toLate = await Relay.start(ahead, behind)
  const hint = `127.0.0.1:${await freePort()}`
  const toLeader = await Relay.start(hint, leader.address)
  ends.push(async () => await toLate.stop())
  ends.push(async () => await toLeader.stop())
  const late = await formed.start('n3', {
    ...changes,
    host: { bind: behind, addressHints: [[leader.id, hint]] },
  })
  for (const [round, relay] of [toLate, toLeader, toLate].entries()) {
    const bytes = (PADDING_BYTES / 5) * (round + 1)
    await until('some of it has come', () => toLate.bytes > bytes)
    relay.cut()
    await until('it is noticed', () => !isConnected(leader, 'n3'))
    relay.mend()
  }
  await until('it has the snapshot', () => received(late) > 0)
  expect(received(late)).toBe(1)
  expect(leader.log.lines.some((line) => line.includes('peer disconnected'))).toBe(true)
  // Three restarts of the transfer would add at least 0.2 + 0.4 + 0.6 of its size.
  expect(toLate.bytes).toBeLessThan(1.6 * PADDING_BYTES)
  await agree(formed)
})

test('a receiver that restarts refuses the rest of a snapshot transfer, and then receives a snapshot from the start', async () => {
  const { formed, leader, changes } = await stage(50_000_000)
  const ahead = formed.member('n3').address
  const behind = `127.0.0.1:${await freePort()}`
  const toLate = await Relay.start(ahead, behind)
  ends.push(async () => await toLate.stop())
  const host = { bind: behind }
  const late = await formed.start('n3', { ...changes, host })
  await until('some of it has come', () => toLate.bytes > PADDING_BYTES / 3)
  await late.kill()
  const again = await formed.start('n3', { ...changes, host })
  await until('it has the snapshot', () => received(again) > 0)
  expect(leader.log.lines.some((line) => line.includes('refused by the receiver'))).toBe(true)
  await agree(formed)
})

function isConnected({ clusterNode }: TestNode, id: string): boolean {
  return clusterNode.members().some((member) => member.id === id && member.connected)
}
