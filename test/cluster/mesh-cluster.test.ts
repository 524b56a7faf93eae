import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { clone } from '@bufbuild/protobuf'
import { afterEach, expect, test } from 'vitest'

import { ConfigurationSchema, type Member } from '../../proto/gen/membership_pb.ts'
import { Problem } from '../../src/lib/problems.ts'
import { nameServer } from '../support/name-server.ts'
import { freePort } from '../support/ports.ts'
import { MemoryDisk } from '../support/memory-disk.ts'
import { command, formCluster, type TestCluster, type TestNode } from './cluster-fixture.ts'
import { storeIdOf, until } from './mesh-fixture.ts'
import { PATIENCE_MS } from '../support/patience.ts'

let cluster: TestCluster | null = null
afterEach(async () => {
  await cluster?.stop()
  cluster = null
})

async function running(size: number): Promise<TestCluster> {
  const formed = await formCluster(size)
  cluster = formed
  for (const id of formed.ids) await formed.start(id)
  await (await formed.leader()).clusterNode.propose(command('first'))
  return formed
}

/** Repeats the change on the leader until the members are as required. */
async function change(formed: TestCluster, alter: (members: Member[]) => Member[]): Promise<void> {
  const end = performance.now() + PATIENCE_MS
  while (performance.now() < end) {
    const { clusterNode } = await formed.leader()
    const { record, isCommitted } = clusterNode.configuration()
    const target = clone(ConfigurationSchema, record)
    target.members = alter(target.members)
    if (isCommitted && (await clusterNode.changeConfiguration(target)) === null) {
      await until('the change is over', () => {
        const now = clusterNode.configuration()
        return now.isCommitted && now.record.outgoingVoters.length === 0
      })
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('the change was never accepted')
}

async function follower(formed: TestCluster): Promise<TestNode> {
  const leader = await formed.leader()
  return formed.node(formed.ids.find((id) => id !== leader.id) ?? '')
}

/**
 * Repeats the transfer until it succeeds, because on a busy machine it may fail, or the leader may
 * lose its term.
 */
async function lead(formed: TestCluster, { id, clusterNode }: TestNode): Promise<void> {
  const end = performance.now() + PATIENCE_MS
  while (clusterNode.status().role !== 'leader') {
    if (performance.now() > end) throw new Error(`${id} never led`)
    const leader = await formed.leader()
    await leader.clusterNode.transferLeadership(id).catch(() => undefined)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const isLinked = ({ clusterNode }: TestNode): boolean =>
  clusterNode.peerStatuses().every(({ isConnected }) => isConnected)

const reasons = (node: TestNode): string[] => node.selfRefusals.map(({ reason }) => reason)

test('a removed member receives the log entry that removes it, and learns from its own log that it was removed', async () => {
  const formed = await running(3)
  const removed = await follower(formed)
  await change(formed, (members) => members.filter(({ id }) => id !== removed.id))
  await until('it knows', () =>
    removed.selfRefusals.some(({ reason, by }) => reason === 'removed' && by === removed.id),
  )
  const listed = () => removed.clusterNode.configuration().record.members.map(({ id }) => id)
  await until('its own log says so', () => !listed().includes(removed.id))
})

test('writes at a removed member fail without waiting for their time limit', async () => {
  const formed = await formCluster(3)
  cluster = formed
  const hour = 3_600_000
  const clusterNode = { proposeTimeoutMs: hour, leaderlessMsMax: hour }
  for (const id of formed.ids) await formed.start(id, { clusterNode })
  await (await formed.leader()).clusterNode.propose(command('first'))
  const removed = await follower(formed)
  const writers = Array.from({ length: 16 }, async (_, n) => {
    for (;;) {
      const fate = await removed.clusterNode
        .propose(command(`${n}`))
        .catch((error: unknown) => error)
      if (fate instanceof Problem) return fate.code
    }
  })
  await change(formed, (members) => members.filter(({ id }) => id !== removed.id))
  const codes = new Set(await Promise.all(writers))
  expect(codes.difference(new Set(['OUTCOME_UNKNOWN', 'CLUSTER_NO_LEADER']))).toEqual(new Set())
  const next = removed.clusterNode.propose(command('next'))
  await expect(next).rejects.toMatchObject({ code: 'CLUSTER_NO_LEADER' })
})

test('a member that was removed while it was down learns of the removal when it returns, and receives no later entries', async () => {
  const formed = await running(3)
  const { id, kill } = await follower(formed)
  await kill()
  await change(formed, (members) => members.filter((member) => member.id !== id))
  await (await formed.leader()).clusterNode.propose(command('without it'))
  const back = await formed.start(id)
  await until('it is reported', () => reasons(back).includes('removed'))
  const told = back.selfRefusals.find(({ reason }) => reason === 'removed')
  expect(told?.index).toBeGreaterThan(back.clusterNode.configuration().index)
  expect(back.effects).not.toContain('without it')
})

test('a controller that knows the members only from its membership cache finds them, learns that it is not yet admitted, and becomes a voter after its admission', async () => {
  const formed = await running(1)
  const member = await formed.prepare('n2')
  const first = formed.node('n1')
  await until('there is a roster to give', () => first.rosters.length > 0)
  const joiner = await formed.start('n2', {
    from: 'empty',
    host: { roster: first.rosters.at(-1) ?? null },
  })
  await until('it is reported', () => reasons(joiner).includes('not-yet-a-member'))
  await change(formed, (members) => [...members, { ...member, voter: false }])
  await until('it has caught up', () => joiner.effects.includes('first'))
  await change(formed, (members) => members.map((one) => ({ ...one, voter: true })))
  await first.clusterNode.propose(command('by two'))
  await until('both have it', () => joiner.effects.includes('by two'))
  expect(reasons(joiner)).not.toContain('removed')
  // Each of the two members can lead.
  await first.clusterNode.transferLeadership('n2')
  await until('the other leads', () => joiner.clusterNode.status().role === 'leader')
})

test('a member with a wiped disk is accepted once its member record contains the new disk’s store ID, and then votes again', async () => {
  const formed = await running(3)
  const { id, kill, rosters } = await follower(formed)
  await until('its roster is kept', () => rosters.length > 0)
  await kill()
  const storeId = storeIdOf('another')
  const back = await formed.start(id, {
    from: 'empty',
    storeId,
    clusterNode: { storeId },
    host: { roster: rosters.at(-1) ?? null },
  })
  await until('it is reported', () => reasons(back).includes('not-yet-a-member'))
  await change(formed, (members) =>
    members.map((one) => (one.id === id ? { ...one, storeId, voter: false } : one)),
  )
  await until('it has caught up', () => back.effects.includes('first'))
  // The start count of the new disk begins again, but the others must not discard its reports as
  // old.
  const isHeardBy = ({ clusterNode }: TestNode) =>
    clusterNode
      .members()
      .some((one) => one.id === id && one.startedAtMs === back.startedAtMs && one.vitals !== null)
  await until('the others hear how it is', () => [...formed.nodes.values()].every(isHeardBy))
  await change(formed, (members) => members.map((one) => ({ ...one, voter: true })))
  await lead(formed, back)
})

test('a member whose disk was reset to an old copy is refused, and learns the reason', async () => {
  const formed = await running(3)
  const { id, kill } = await follower(formed)
  await kill()
  const leader = await formed.leader()
  await leader.clusterNode.propose(command('second'))
  // The same store ID with the initial log.
  const back = await formed.start(id, { from: 'nothing' })
  await until('it is reported', () => reasons(back).includes('rolled-back'))
  expect(back.effects).toEqual([])
  const term = leader.clusterNode.status().term
  await leader.clusterNode.propose(command('third'))
  expect(leader.clusterNode.status().term).toBe(term)
})

test('a disk that was reset to an old copy is still refused after a restart of all members', async () => {
  const formed = await running(3)
  const id = (await follower(formed)).id
  await until('it has the first write', () => formed.node(id).effects.includes('first'))
  await formed.node(id).kill()
  const copy = formed.node(id).disk.reopen()
  copy.disk.crash()
  await formed.start(id)
  await until('they are linked', () => [...formed.nodes.values()].every(isLinked))
  await (await formed.leader()).clusterNode.propose(command('second'))
  const others = formed.ids.filter((one) => one !== id)
  const applied = () => formed.node(id).clusterNode.status().applied
  const isKept = (one: string) => {
    const mark = formed
      .node(one)
      .rosters.at(-1)
      ?.marks?.find((known) => known.id === id)
    return formed.node(id).effects.includes('second') && mark?.heard.applied === applied()
  }
  await until('both others keep how far it was', () => others.every(isKept))
  const rosters = new Map(formed.ids.map((one) => [one, formed.node(one).rosters.at(-1) ?? null]))
  for (const one of formed.ids) await formed.node(one).kill()
  formed.nodes.clear()

  // The boot count equals that of the real disk, so only the missing entries show that the disk was
  // reset.
  let log = MemoryDisk.form({ entries: copy.restored.entries })
  for (const _ of [2, 3, 4]) {
    log.disk.crash()
    log = log.disk.reopen()
  }
  const start = async (one: string): Promise<TestNode> =>
    await formed.start(one, {
      host: { roster: rosters.get(one) ?? null },
      ...(one === id && { log }),
    })
  const back = await start(id)
  await start(others[0] ?? '')
  await until('it is refused by the first to start', () =>
    back.selfRefusals.some(({ reason, by }) => reason === 'rolled-back' && by === others[0]),
  )
  await start(others[1] ?? '')
  await until('and by the other', () => new Set(back.selfRefusals.map(({ by }) => by)).size === 2)
  const leader = await formed.leader()
  expect(others).toContain(leader.id)
  await leader.clusterNode.propose(command('third'))
  expect(leader.effects).toEqual(['first', 'second', 'third'])
  expect(back.effects).not.toContain('second')
  expect(new Set(reasons(back))).toEqual(new Set(['rolled-back']))
})

test('after a change of all addresses, members with one common DNS name elect a leader within 10 s', async () => {
  const formed = await running(3)
  for (const id of formed.ids) await formed.node(id).kill()
  formed.nodes.clear()
  const port = await freePort()
  const hosts = formed.ids.map((_, at) => `127.0.0.${31 + at}`)
  const names = await nameServer(hosts)
  try {
    const startedMs = performance.now()
    for (const [at, id] of formed.ids.entries()) {
      const address = `${hosts[at] ?? ''}:${port}`
      const host = { bind: address, advertise: address }
      const seeds = [`cluster.test:${port}`]
      await formed.start(id, { host: { ...host, seeds, resolvers: [names.at] } })
    }
    await until(
      'there is a leader',
      () =>
        [...formed.nodes.values()].some(
          ({ clusterNode }) => clusterNode.status().role === 'leader',
        ),
      10_000,
    )
    const leader = await formed.leader()
    await leader.clusterNode.propose(command('elsewhere'))
    console.log(`a leader and a write after ${Math.round(performance.now() - startedMs)} ms`)
    await until('all have it', () =>
      [...formed.nodes.values()].every(({ effects }) => effects.includes('elsewhere')),
    )
    await until('the roster says where they are now', () => {
      const claims = leader.rosters.at(-1)?.claims ?? []
      return hosts.every((host) => claims.some((claim) => Buffer.from(claim).includes(host)))
    })
  } finally {
    names.close()
  }
})

test('a cluster that restarts while no DNS server responds elects a leader through the last known addresses of its DNS name', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'flotilla-names-'))
  const formed = await running(3)
  const port = await freePort()
  const hosts = formed.ids.map((_, at) => `127.0.0.${41 + at}`)
  const names = await nameServer(hosts)
  // The addresses in their records do not exist any more, so that the members find each other only
  // by the name.
  const restart = async (): Promise<void> => {
    for (const id of formed.ids) await formed.node(id).kill()
    formed.nodes.clear()
    for (const [at, id] of formed.ids.entries()) {
      const address = `${hosts[at] ?? ''}:${port}`
      const seeds = [`cluster.test:${port}`]
      const lastAddressesFile = join(folder, `${id}.json`)
      const named = { seeds, resolvers: [names.at], lastAddressesFile }
      await formed.start(id, { host: { bind: address, advertise: address, ...named } })
    }
  }
  try {
    await restart()
    await (await formed.leader()).clusterNode.propose(command('by name'))
    for (const id of formed.ids) {
      await until('its addresses are kept', () => existsSync(join(folder, `${id}.json`)))
    }
    names.close()
    await restart()
    await (await formed.leader()).clusterNode.propose(command('without a name server'))
    await until('all have it', () =>
      [...formed.nodes.values()].every(({ effects }) => effects.includes('without a name server')),
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
})
