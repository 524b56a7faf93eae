import { callPeer } from '../../src/cluster/peer/peer-message.ts'
import { peerMethods } from '../../src/cluster/peer/peer-methods.ts'
import { fromBinary } from '@bufbuild/protobuf'
import { afterEach, expect, test } from 'vitest'

import { CommandSchema } from '../../proto/gen/command_pb.ts'
import type { QuarantineRecord } from '../../src/cluster/state-transfer/quarantine.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { Entry } from '../../src/raft/types.ts'
import {
  command,
  formCluster,
  type StartChanges,
  type TestCluster,
  type TestNode,
} from './cluster-fixture.ts'
import { until } from './mesh-fixture.ts'

// Goal: a controller whose state differs from that of the majority answers no request until its
// state is equal again. Method: real controllers over gRPC. One of them skips a command of the log,
// so that its count of commands, which it returns in responses, is wrong from then on.

const clusters: TestCluster[] = []
afterEach(async () => {
  await Promise.all(clusters.splice(0).map(async (formed) => await formed.stop()))
})

async function runningCluster(size: number, changes: StartChanges = {}): Promise<TestCluster> {
  const formed = await formCluster(size)
  clusters.push(formed)
  await Promise.all(formed.ids.map(async (id) => await formed.start(id, changes)))
  await formed.leader()
  return formed
}

class Mark implements QuarantineRecord {
  isOn = false
  /** Number of times that the alarm was raised. */
  times = 0
  isSet = (): boolean => this.isOn
  set = (): void => {
    this.isOn = true
    this.times += 1
  }
  clear = (): void => {
    this.isOn = false
  }
}

const payloadOf = (entry: Entry): string =>
  new TextDecoder().decode(fromBinary(CommandSchema, entry.data).payload)

/** Skips the commands that `isWrong` selects. */
function misapply(node: TestNode, isWrong: (payload: string) => boolean): void {
  const apply = node.machine.apply.bind(node.machine)
  node.machine.apply = (entry) => {
    const isLeftOut = entry.type === 'command' && isWrong(payloadOf(entry))
    return apply(isLeftOut ? { ...entry, type: 'noop' } : entry)
  }
}

/** Outcome of each log entry by index, according to this controller. */
function outcomesOf(node: TestNode): ReadonlyMap<number, string> {
  const outcomes = new Map<number, string>()
  const apply = node.machine.apply.bind(node.machine)
  node.machine.apply = (entry) => {
    const applied = apply(entry)
    if (applied.outcome?.ok === true) outcomes.set(entry.index, applied.outcome.id)
    return applied
  }
  return outcomes
}

const codesOf = (node: TestNode): string[] =>
  node.clusterNode.status().alarms.map(({ code }) => code)

async function settled(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'done'
  } catch (error) {
    return error instanceof Problem ? error.code : String(error)
  }
}

async function followerOf(formed: TestCluster): Promise<TestNode> {
  const leader = await formed.leader()
  return formed.node(formed.ids.find((id) => id !== leader.id) ?? '')
}

async function allAgree(formed: TestCluster): Promise<void> {
  await until('all hold one state', () => {
    const digests = formed.ids.map((id) => formed.node(id).machine.digests())
    return digests.every(
      ({ index, state }) => index === digests[0]?.index && state === digests[0].state,
    )
  })
}

/**
 * Writes through a controller without a pause; records the result of each attempt, and whether the
 * controller was in quarantine at its start.
 */
function writeThrough(node: TestNode, name: string) {
  const fates: { readonly fate: string; readonly wasOut: boolean }[] = []
  const answers: { readonly index: number; readonly id: string; readonly wasOut: boolean }[] = []
  let isOver = false
  const write = async (i: number): Promise<void> => {
    const { index, outcome } = await node.clusterNode.propose(command(`${name}-${i}`))
    const id = outcome.ok ? outcome.id : outcome.code
    answers.push({ index, id, wasOut: node.clusterNode.isQuarantined })
  }
  const run = (async () => {
    for (let i = 0; !isOver; i += 1) {
      const wasOut = node.clusterNode.isQuarantined
      fates.push({ fate: await settled(write(i)), wasOut })
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  })()
  return {
    fates,
    answers,
    end: async () => {
      isOver = true
      await run
    },
  }
}

test('a follower that misapplies an entry stops serving requests, rebuilds its state from another member, and then has the same state as the others', async () => {
  const mark = new Mark()
  const formed = await runningCluster(3, { quarantineMark: mark })
  const odd = await followerOf(formed)
  const steady = formed.ids.filter((id) => id !== odd.id)
  // Skips only one entry, because the same entry of the other writer could come after the rebuild.
  misapply(odd, (payload) => payload === `${steady[0]}-100`)
  const truth = outcomesOf(formed.node(steady[0] ?? ''))
  const others = steady.map((id) => writeThrough(formed.node(id), id))
  const own = writeThrough(odd, 'own')
  await until('it is out of service', () => odd.clusterNode.isQuarantined)
  expect([mark.isOn, codesOf(odd).includes('STATE_QUARANTINED')]).toEqual([true, true])
  expect(odd.clusterNode.health().alarms.some(({ isCritical }) => isCritical)).toBe(true)
  expect(await settled(odd.clusterNode.propose(command('refused')))).toBe('NODE_QUARANTINED')
  expect(await settled(odd.clusterNode.readIndex())).toBe('NODE_QUARANTINED')
  await until('it is in service again', () => !odd.clusterNode.isQuarantined)
  const before = own.answers.length
  await until('it answers again', () => own.answers.length > before + 20)
  await own.end()
  for (const writer of others) await writer.end()
  await allAgree(formed)
  const isWrong = ({ index, id }: { readonly index: number; readonly id: string }) =>
    truth.get(index) !== id
  // Some responses were wrong, but none after the divergence was detected.
  expect(own.answers.filter(isWrong)).not.toEqual([])
  expect(own.answers.slice(before).filter(isWrong)).toEqual([])
  expect(own.answers.filter(({ wasOut }) => wasOut)).toEqual([])
  // Writes through the controller in quarantine have an unknown outcome; writes through the others
  // succeed.
  expect(own.fates.filter(({ wasOut }) => wasOut).map(({ fate }) => fate)).not.toContain('done')
  for (const writer of others) {
    expect(new Set(writer.fates.map(({ fate }) => fate))).toEqual(new Set(['done']))
  }
  expect([mark.isOn, mark.times]).toEqual([false, 1])
  await until('no alarm is left', () =>
    formed.ids.every((id) => codesOf(formed.node(id)).length === 0),
  )
  for (const id of formed.ids) expect(formed.node(id).fatal).toEqual([])
})

test('an outstanding write gets an unknown outcome when its controller enters quarantine', async () => {
  const formed = await runningCluster(3)
  const odd = await followerOf(formed)
  const leader = await formed.leader()
  misapply(odd, (payload) => payload === 'once')
  await leader.clusterNode.propose(command('once'))
  const fates = new Set<string>()
  let inFlight = 0
  while (!odd.clusterNode.isQuarantined) {
    inFlight += 1
    void settled(odd.clusterNode.propose(command(`pending-${inFlight}`))).then((fate) => {
      fates.add(odd.clusterNode.isQuarantined ? fate : 'before')
    })
    await new Promise((resolve) => setImmediate(resolve))
  }
  await until('it is in service again', () => !odd.clusterNode.isQuarantined)
  expect([...fates]).not.toContain('done')
  expect(fates).toContain('OUTCOME_UNKNOWN')
})

test('a leader in quarantine transfers leadership, and rebuilds its state', async () => {
  const formed = await runningCluster(3)
  const odd = await formed.leader()
  misapply(odd, (payload) => payload === '20')
  const through = formed.node(formed.ids.find((id) => id !== odd.id) ?? '')
  for (let i = 0; i < 40; i += 1) await through.clusterNode.propose(command(`${i}`))
  await until('it was out of service', () =>
    odd.log.lines.some((line) => line.includes('STATE_QUARANTINED')),
  )
  await until('another one leads', () => {
    const leader = through.clusterNode.leaderId()
    return leader !== null && leader !== odd.id
  })
  await until('it is in service again', () => !odd.clusterNode.isQuarantined)
  expect(await settled(odd.clusterNode.propose(command('after')))).toBe('done')
  await allAgree(formed)
})

test('a controller whose state differs again after every rebuild serves no requests, and still applies the log', async () => {
  const mark = new Mark()
  const formed = await runningCluster(3)
  const id = (await followerOf(formed)).id
  await formed.node(id).kill()
  const odd = await formed.start(id, { quarantineMark: mark })
  misapply(odd, (payload) => payload.endsWith('7'))
  const leader = await formed.leader()
  const writer = writeThrough(leader, 'w')
  await until(
    'it gives up',
    () => odd.clusterNode.status().alarms.some(({ text }) => text.includes('rebuilds')),
    30_000,
  )
  const { applied } = odd.clusterNode.status()
  await until('it still applies', () => odd.clusterNode.status().applied > applied + 50)
  await writer.end()
  expect([odd.clusterNode.isQuarantined, mark.isOn]).toEqual([true, true])
  expect(new Set(writer.fates.map(({ fate }) => fate))).toEqual(new Set(['done']))
  expect(odd.fatal).toEqual([])
})

test('two members with different states raise an alarm, and both serve requests while the third member is disconnected', async () => {
  const formed = await runningCluster(3)
  const odd = await followerOf(formed)
  const leader = await formed.leader()
  const away = formed.ids.find((id) => id !== odd.id && id !== leader.id) ?? ''
  await formed.node(away).kill()
  misapply(odd, (payload) => payload === '5')
  for (let i = 0; i < 70; i += 1) await leader.clusterNode.propose(command(`${i}`))
  await until('both have noticed', () =>
    [odd, leader].every((node) => codesOf(node).includes('STATE_DIVERGED')),
  )
  for (let i = 0; i < 70; i += 1) {
    expect(await settled(odd.clusterNode.propose(command(`more ${i}`)))).toBe('done')
  }
  expect([odd.clusterNode.isQuarantined, leader.clusterNode.isQuarantined]).toEqual([false, false])
  // The third member decides which of the two states is correct.
  await formed.start(away)
  await until('the odd one is out of service', () =>
    odd.log.lines.some((line) => line.includes('STATE_QUARANTINED')),
  )
  await until('it is in service again', () => !odd.clusterNode.isQuarantined)
  await allAgree(formed)
})

test('a controller that stopped in quarantine serves no requests after its restart until its state is rebuilt', async () => {
  const mark = new Mark()
  const formed = await runningCluster(3)
  const leader = await formed.leader()
  for (let i = 0; i < 200; i += 1) await leader.clusterNode.propose(command(`${i}`))
  const id = (await followerOf(formed)).id
  await formed.node(id).kill()
  mark.set()
  // Permits the state machine to lag behind the log only a little, so that the other members are
  // soon far ahead.
  const host = { core: { applyLagEntriesMax: 16 } }
  const back = await formed.start(id, { quarantineMark: mark, host })
  expect(back.clusterNode.isQuarantined).toBe(true)
  expect(back.machine.progress().applied).toBe(0)
  await until('it is in service', () => !back.clusterNode.isQuarantined)
  expect(mark.isOn).toBe(false)
  // Most of the state came from another member and not from applying the log.
  expect(back.effects.length).toBeLessThan(200)
  expect(await settled(back.clusterNode.propose(command('after')))).toBe('done')
  await allAgree(formed)
  expect(back.fatal).toEqual([])
})

test('a snapshot from the leader that arrives during a rebuild results in one consistent state', async () => {
  const mark = new Mark()
  mark.set()
  const changes: StartChanges = {
    persistEntries: 300,
    clusterNode: { retention: { entries: 100, bytes: 20_000, catchUpBytes: 20_000 } },
  }
  const formed = await formCluster(3)
  clusters.push(formed)
  await formed.start('n1', changes)
  await formed.start('n2', changes)
  const leader = await formed.leader()
  for (const { machine } of formed.nodes.values()) machine.snapshotPaddingBytes = 2_000_000
  for (let i = 0; i < 20; i += 1) {
    await Promise.all(
      Array.from({ length: 50 }, (_, k) => leader.clusterNode.propose(command(`${i}-${k}`))),
    )
  }
  const writer = writeThrough(leader, 'during')
  const late = await formed.start('n3', { ...changes, quarantineMark: mark })
  await until('it is in service', () => !late.clusterNode.isQuarantined)
  await writer.end()
  expect(late.fatal).toEqual([])
  expect(await settled(late.clusterNode.propose(command('after')))).toBe('done')
  await allAgree(formed)
})

test('a controller refuses to send a piece of an unknown or closed snapshot, a piece out of order, and a state at an index that it has not reached', async () => {
  const formed = await runningCluster(3)
  const { clusterNode } = formed.node('n1')
  await clusterNode.propose(command('something'))
  await until('they are connected', () => clusterNode.peers.readyPeers().length === 2)
  const { snapshot, piece, digest } = peerMethods
  const open = (index: bigint): Promise<{ readonly id: bigint }> =>
    callPeer(clusterNode.peers, 'n2', snapshot, { index }, 5000)
  const read = (id: bigint, number: bigint): Promise<unknown> =>
    callPeer(clusterNode.peers, 'n2', piece, { id, number }, 5000)
  const { id } = await open(1n)
  await expect(read(id + 1n, 0n)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(read(id, 1n)).rejects.toMatchObject({ code: 'COULD_NOT_VALIDATE' })
  await expect(open(1_000_000n)).rejects.toMatchObject({ code: 'INDEX_NOT_REACHED' })
  // The second request has closed the snapshot of the first one.
  await expect(read(id, 0n)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  const unknown = await callPeer(clusterNode.peers, 'n2', digest, { index: 1_000_000n }, 5000)
  expect(unknown.digest).toBe('')
})

test('members that rebuild their state receive it from another controller no faster than the configured rate', async () => {
  const bytesPerSecond = 1_000_000
  const formed = await runningCluster(3, { clusterNode: { stateBytesPerSecond: bytesPerSecond } })
  const { clusterNode } = formed.node('n1')
  await clusterNode.propose(command('something'))
  await until('they are connected', () => clusterNode.peers.readyPeers().length === 2)
  formed.node('n2').machine.snapshotPaddingBytes = bytesPerSecond
  const { snapshot, piece } = peerMethods
  const { id } = await callPeer(clusterNode.peers, 'n2', snapshot, { index: 1n }, 5000)
  const beganMs = performance.now()
  let bytes = 0
  for (let number = 0n, isLast = false; !isLast; number += 1n) {
    const chunk = await callPeer(clusterNode.peers, 'n2', piece, { id, number }, 60_000)
    bytes += chunk.data.length
    isLast = chunk.last
  }
  expect(bytes).toBeGreaterThanOrEqual(bytesPerSecond)
  // The last piece is granted as soon as the pieces before it are paid.
  const paidMs = ((bytes - 2 * 256 * 1024) / bytesPerSecond) * 1000
  expect(performance.now() - beganMs).toBeGreaterThan(paidMs)
})
