import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { ClusterState } from '../../../src/fsm/access/cluster-state.ts'
import { loadState } from '../../../src/fsm/records/load.ts'
import { currentStorePosition } from '../../../src/fsm/records/write-behind.ts'
import { requirePresent } from '../../../src/lib/assert.ts'
import { LevelStateStore } from '../../../src/store/state/level-state-store.ts'
import { QuarantineFile } from '../../../src/store/folder/quarantine-file.ts'
import { type Client, createService, isRunning, until } from '../support/client.ts'
import type { TestCluster } from '../support/cluster.ts'
import { sharedCluster } from '../support/shared-cluster.ts'

// Goal: if the state on a controller's disk differs from the result of its log, the other
// controllers detect it, the controller answers no requests while it is wrong, and it repairs
// itself in the same process. Method: while the controller is stopped, the test changes one record
// in its store, including the digests, so that the store itself is consistent.

let cluster: TestCluster
beforeAll(() => {
  cluster = sharedCluster()
})

const services = '/edge/management/v1/services'

async function idOf(client: Client, name: string): Promise<string> {
  const filter = encodeURIComponent(`name="${name}"`)
  const { body } = await client.request('GET', `${services}?filter=${filter}`)
  return requirePresent((body.data as { id: string }[])[0]?.id, `a service named ${name}`)
}

async function renameOnDisk(folder: string, id: string, name: string): Promise<void> {
  const store = await LevelStateStore.open(folder)
  try {
    const state = await loadState(store, new ClusterState())
    state.put('service', { ...requirePresent(state.get('service', id), 'the service'), name })
    await store.write(state.takeDirty(), currentStorePosition(state))
  } finally {
    await store.close()
  }
}

async function nameOnDisk(folder: string, id: string): Promise<unknown> {
  const store = await LevelStateStore.open(folder)
  try {
    return (await loadState(store, new ClusterState())).get('service', id)?.['name']
  } finally {
    await store.close()
  }
}

/**
 * Reads a service from the controller repeatedly while others write, and returns the different
 * values in the order of arrival.
 */
async function seenUntilRight(
  reader: Client,
  id: string,
  writers: readonly Client[],
  written: { count: number },
): Promise<string[]> {
  const seen: string[] = []
  const ask = async (): Promise<boolean> => {
    const name = `n-${written.count}`
    await createService(writers, written.count, name, { hasRequestId: true })
    written.count += 1
    const answer = await reader.request('GET', `${services}/${id}`)
    const data = answer.body.data as { name: string } | undefined
    const found = data?.name ?? answer.body.error?.code ?? 'nothing'
    if (seen.at(-1) !== found) seen.push(found)
    return found === 'n-7'
  }
  await until('it is right again', ask)
  return seen
}

test('a controller with one wrong record on disk is quarantined, serves no requests, and recovers without a restart', async () => {
  const [odd = 0, other = 0] = await cluster.followers()
  const steady = [await cluster.loggedIn(await cluster.leader()), await cluster.loggedIn(other)]
  for (let n = 0; n < 50; n += 1) await createService(steady, n, `n-${n}`, { hasRequestId: true })
  const id = await idOf(steady[0] ?? cluster.client(other), 'n-7')
  const reader = await cluster.loggedIn(odd)
  const folder = join(cluster.folder, cluster.id(odd))
  const data = join(folder, 'data')
  cluster.kill(odd, 'SIGTERM')
  await until('it is down', () => Promise.resolve(cluster.pid(odd) === null))
  await renameOnDisk(data, id, 'not what was written')
  cluster.run(odd)
  const written = { count: 50 }
  const seen = await seenUntilRight(reader, id, steady, written)
  // After the detection, the controller never shows the wrong value.
  expect(seen.slice(seen.indexOf('NODE_QUARANTINED'))).toEqual(['NODE_QUARANTINED', 'n-7'])
  // The controller writes its log file with a delay.
  await until('the log tells of the end', () => {
    const log = readFileSync(join(folder, 'controller.log'), 'utf8')
    return Promise.resolve(log.includes('STATE_QUARANTINED') && log.includes('quarantine lifted'))
  })
  const pid = cluster.pid(odd)
  await createService([reader], 0, 'through it', { hasRequestId: false })
  await until('one digest at one index', async () => {
    const statuses = await Promise.all([1, 2, 3].map((k) => cluster.status(k)))
    const own = statuses.map((members, at) => members.find((m) => m.id === cluster.id(at + 1)))
    return new Set(own.map((m) => `${m?.digestIndex} ${m?.digest}`)).size === 1
  })

  // The record on the disk is repaired, too.
  cluster.kill(odd, 'SIGKILL')
  await until('it is down', () => Promise.resolve(!isRunning(pid)))
  expect(await nameOnDisk(data, id)).toBe('n-7')

  // The controller ended while in quarantine, as the mark in its data folder says, so it answers no
  // requests when it starts.
  await renameOnDisk(data, id, 'not what was written')
  new QuarantineFile(data).set('for the test')
  cluster.run(odd)
  expect(await seenUntilRight(reader, id, steady, written)).toEqual(['NODE_QUARANTINED', 'n-7'])
  expect(new QuarantineFile(data).isSet()).toBe(false)
})
