import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadState } from '../../src/fsm/load.ts'
import { markOf } from '../../src/fsm/write-behind.ts'
import { present } from '../../src/lib/assert.ts'
import { LevelStateStore } from '../../src/store/level-state-store.ts'
import { createService, until } from './support/client.ts'
import type { Client } from './support/client.ts'
import { TestCluster } from './support/cluster.ts'

// Goal: a controller whose state on disk is not what its log has made of it is found out by the others, answers nothing
// then, and is right again in the same process. Method: while it is down, one record in its store is changed, digests
// and all, so that the store itself is sound.

let cluster: TestCluster
beforeAll(async () => {
  cluster = await TestCluster.start()
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

const services = '/edge/management/v1/services'

async function idOf(client: Client, name: string): Promise<string> {
  const filter = encodeURIComponent(`name="${name}"`)
  const { body } = await client.request('GET', `${services}?filter=${filter}`)
  return present((body.data as { id: string }[])[0]?.id, `a service named ${name}`)
}

async function renameOnDisk(folder: string, id: string, name: string): Promise<void> {
  const store = await LevelStateStore.open(folder)
  try {
    const state = await loadState(store)
    state.put('service', { ...present(state.get('service', id), 'the service'), name })
    await store.write(state.takeDirty(), markOf(state))
  } finally {
    await store.close()
  }
}

test('a controller with one wrong record on disk is found out, answers nothing, and is right again without a restart', async () => {
  const [odd = 0, other = 0] = await cluster.followers()
  const steady = [await cluster.loggedIn(await cluster.leader()), await cluster.loggedIn(other)]
  for (let n = 0; n < 50; n += 1) await createService(steady, n, `n-${n}`, { hasRequestId: true })
  const id = await idOf(steady[0] ?? cluster.client(other), 'n-7')
  const reader = await cluster.loggedIn(odd)
  const folder = join(cluster.folder, cluster.id(odd))
  cluster.kill(odd, 'SIGTERM')
  await until('it is down', () => Promise.resolve(cluster.pid(odd) === null))
  await renameOnDisk(join(folder, 'data'), id, 'not what was written')
  cluster.run(odd)
  const seen: string[] = []
  let written = 50
  await until(
    'it is right again',
    async () => {
      await createService(steady, written, `n-${written}`, { hasRequestId: true })
      written += 1
      const answer = await reader.request('GET', `${services}/${id}`)
      const data = answer.body.data as { name: string } | undefined
      const found = data?.name ?? answer.body.error?.code ?? 'nothing'
      if (seen.at(-1) !== found) seen.push(found)
      return found === 'n-7'
    },
    60_000,
  )
  // Never wrong once it was found out.
  expect(seen.slice(seen.indexOf('NODE_QUARANTINED'))).toEqual(['NODE_QUARANTINED', 'n-7'])
  const log = readFileSync(join(folder, 'controller.log'), 'utf8')
  expect(log).toContain('STATE_QUARANTINED')
  expect(log).toContain('in service again')
  const pid = cluster.pid(odd)
  await createService([reader], 0, 'through it', { hasRequestId: false })
  await until('one digest at one index', async () => {
    const statuses = await Promise.all([1, 2, 3].map((k) => cluster.status(k)))
    const own = statuses.map((members, at) => members.find((m) => m.id === cluster.id(at + 1)))
    return new Set(own.map((m) => `${m?.digestIndex} ${m?.digest}`)).size === 1
  })

  // What it was sent is on its disk as well.
  cluster.kill(odd, 'SIGKILL')
  await until('it is down', () => {
    try {
      return Promise.resolve(!process.kill(pid ?? 0, 0))
    } catch {
      return Promise.resolve(true)
    }
  })
  const store = await LevelStateStore.open(join(folder, 'data'))
  const state = await loadState(store)
  await store.close()
  expect(state.get('service', id)?.['name']).toBe('n-7')
})
