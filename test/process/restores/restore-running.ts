import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'

import { readFileChunks } from '../../../src/backup/backup-files.ts'
import { loadBackup } from '../../../src/backup/load-backup.ts'
import { splitRestoreContent } from '../../../src/backup/restore-content.ts'
import { removeSessions } from '../../../src/fsm/restored-state.ts'
import { sendToAdminSocket } from '../../../src/cli/client/admin-socket.ts'
import { clusterOperationRequest } from '../../../src/cli/client/connection.ts'
import type { RestoreIntoClusterResult } from '../../../src/cli/snapshot/restore-running.ts'
import { MemoryStateStore } from '../../../src/store/state/memory-state-store.ts'
import { allServices, type Client, createService, pause, until } from '../support/client.ts'
import { expectMembers, type Fleet } from '../support/fleet.ts'
import { sharedFleet } from '../support/shared-cluster.ts'

// Goal: one step restores records that were deleted by mistake, on every controller of a running
// cluster, whichever process is killed meanwhile. Method: three controllers; clients read from each
// one all the time, and may see either all old services or all new ones, never a mixture.

const management = '/edge/management/v1'
const services = 60

let fleet: Fleet
let file = ''
beforeAll(async () => {
  fleet = sharedFleet()
  file = join(fleet.dir, 'monday.backup')
  await expectMembers(fleet, [1, 2, 3])
  const client = await fleet.loggedIn(1)
  for (let n = 0; n < services; n += 1)
    await createService([client], 0, `s-${n}`, { hasRequestId: true })
  const words = ['cluster', 'snapshot', 'save', file, '--config', fleet.config(2), '--plaintext']
  const saved = await fleet.cli(words)
  expect(saved.code, saved.stderr).toBe(0)
})

/** Deletes half of the services, and adds an unwanted one. */
async function harm(client: Client): Promise<void> {
  const ids = [...(await allServices(client)).keys()].slice(0, services / 2)
  for (const id of ids) await client.request('DELETE', `${management}/services/${id}`)
  await createService([client], 0, 'unwanted', { hasRequestId: true })
}

async function countOn(client: Client): Promise<number> {
  const answer = await client.request('GET', `${management}/services?limit=500`)
  return answer.status === 200 ? (answer.body.data as unknown[]).length : -answer.status
}

/**
 * Reads from one controller repeatedly until `isOver`. It logs in again when its session has ended.
 */
async function watch(k: number, seen: Set<number>, isOver: () => boolean): Promise<void> {
  let client = await fleet.loggedIn(k)
  while (!isOver()) {
    const count = await countOn(client)
    if (count === -401) client = await fleet.loggedIn(k)
    seen.add(count)
    await pause(5)
  }
}

async function clusterId(): Promise<string> {
  const status = (await sendToAdminSocket(fleet.data(1), clusterOperationRequest('status'))) as {
    readonly clusterId: string
  }
  return status.clusterId
}

async function expectServices(count: number): Promise<void> {
  for (const k of [1, 2, 3]) {
    const client = await fleet.loggedIn(k)
    await until(`ctrl${k} has ${count}`, async () => (await countOn(client)) === count)
  }
}

async function expectRestored(): Promise<void> {
  await expectServices(services)
  for (const k of [1, 2, 3]) {
    const client = await fleet.loggedIn(k)
    expect(
      await client.request('GET', `${management}/services?filter=name%3D%22unwanted%22`),
    ).toMatchObject({ body: { data: [] } })
  }
}

test('every controller shows the restored services after a restore, and an earlier session has ended', async () => {
  const client = await fleet.loggedIn(1)
  await harm(client)
  let isOver = false
  await expectServices(services / 2 + 1)
  const counts = [1, 2, 3].map(() => new Set<number>())
  const watched = counts.map((seen, at) => watch(at + 1, seen, () => isOver))
  await until('each controller is watched', () =>
    Promise.resolve(counts.every((seen) => seen.size > 0)),
  )
  const words = ['cluster', 'snapshot', 'restore', file, '--config', fleet.config(3), '--json']
  const unconfirmed = await fleet.cli(words)
  expect(unconfirmed.stderr).toMatch(/nothing was changed\. Pass --confirm/)
  const restored = await fleet.cli([...words, '--confirm', await clusterId()])
  expect(restored.code, restored.stderr).toBe(0)
  const told = JSON.parse(restored.stdout) as RestoreIntoClusterResult
  expect(told).toMatchObject({ isRestored: true, applied: ['ctrl1', 'ctrl2', 'ctrl3'] })
  expect((await client.request('GET', `${management}/identities`)).status).toBe(401)
  await expectRestored()
  isOver = true
  await Promise.all(watched)
  for (const seen of counts) {
    expect([...seen].filter((count) => count > 0).sort()).toEqual([services / 2 + 1, services])
  }
  for (const k of [1, 2, 3])
    expect(fleet.log(k)).toMatch(/replaced all records by those of a backup/)
})

test('a restore completes with the same records if the leader is killed during staging and members restart', async () => {
  await harm(await fleet.loggedIn(1))
  const { state, manifest } = await loadBackup(readFileChunks(file), new MemoryStateStore(), {
    privateKeyPem: null,
  })
  removeSessions(state)
  const { chunks, bytes, sha256 } = splitRestoreContent(state)
  const cut = chunks.flatMap(({ bytes: whole }) => [whole.subarray(0, 99), whole.subarray(99)])
  const leader = await fleet.leader(1)
  const through = leader === 1 ? 2 : 1
  const ask = (verb: string, params: object): Promise<unknown> =>
    sendToAdminSocket(fleet.data(through), {
      method: 'POST',
      path: `/fabric/v1/cluster/restore/${verb}`,
      timeoutMs: 60_000,
      body: { id: 'by-hand', ...params },
    })
  const { clusterId: from, featureLevel } = manifest
  const head = { chunks: cut.length, bytes, sha256, clusterId: from, featureLevel }
  await ask('begin', head)
  const stage = async (number: number): Promise<void> => {
    const endsBlock = number % 2 === 1
    const text = Buffer.from(cut[number] ?? []).toString('base64')
    await ask('chunk', { number, endsBlock, bytes: text })
  }
  const end = { sha256, ifIndex: 0, reason: 'by hand' }
  await stage(0)
  await fleet.stop(leader, 'SIGKILL')
  for (let number = 1; number < cut.length; number += 1) await stage(number)
  await until('the leader that is gone is missed', async () => {
    const told = await ask('end', end).catch((error: unknown) => String(error))
    expect(told, 'with an unreachable member').toMatch(/unreachable: ctrl/)
    return true
  })
  await fleet.start(leader)
  await fleet.stop(through, 'SIGKILL')
  await fleet.start(through)
  await until(
    'all are there',
    async () => {
      await ask('end', end)
      return true
    },
    60_000,
  )
  await expectRestored()
})

test('a restore of a file that is not a backup changes nothing', async () => {
  const client = await fleet.loggedIn(1)
  const count = await countOn(client)
  const notes = join(fleet.dir, 'notes.txt')
  writeFileSync(notes, 'no backup')
  const words = ['cluster', 'snapshot', 'restore', notes, '--config', fleet.config(1)]
  const refused = await fleet.cli([...words, '--confirm', await clusterId()])
  expect(refused.code).toBe(1)
  expect(refused.stderr).toMatch(/not a backup of flotilla/)
  expect(await countOn(client)).toBe(count)
})
