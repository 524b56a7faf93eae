import { readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readFileChunks } from '../../src/backup/backup-files.ts'
import { loadBackup } from '../../src/backup/load-backup.ts'
import { MemoryStateStore } from '../../src/store/state/memory-state-store.ts'
import { allServices, createService, until } from './support/client.ts'
import { TestCluster } from './support/cluster.ts'

// Goal: a follower that was paused for longer than the log keeps entries catches up by snapshot, in
// the same process. Method: SIGSTOP the follower, write until the leader has truncated its log,
// SIGCONT.

const writes = Number(process.env['FLOTILLA_TEST_WRITES'] ?? 3000)
let cluster: TestCluster
beforeAll(async () => {
  // This test writes fewer entries than the log keeps by default, so the configuration makes it
  // keep fewer.
  const keepsLittle = { FLOTILLA_LOG_RETAIN_ENTRIES: '500', FLOTILLA_LOG_RETAIN_BYTES: '131072' }
  cluster = await TestCluster.start({ env: writes < 30_000 ? keepsLittle : {} })
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

test(`a follower that was paused during ${writes} writes and a compaction catches up without a restart, and has the digest of the other controllers`, async () => {
  const leader = await cluster.leader()
  const [sleeper] = await cluster.followers()
  if (sleeper === undefined) throw new Error('no follower')
  const pid = cluster.pid(sleeper)
  const awake = await Promise.all(
    [1, 2, 3].filter((k) => k !== sleeper).map((k) => cluster.loggedIn(k)),
  )
  cluster.kill(sleeper, 'SIGSTOP')
  let next = 0
  await Promise.all(
    Array.from({ length: 32 }, async (_, worker) => {
      for (let n = next++; n < writes; n = next++) {
        await createService(awake, worker + n, `n-${n}`, { hasRequestId: true })
      }
    }),
  )
  await until('the leader has persisted past what it keeps', async () => {
    const own = (await cluster.status(leader)).find((m) => m.id === `ctrl${leader}`)
    return own !== undefined && own.persisted >= writes
  })
  cluster.kill(sleeper, 'SIGCONT')
  const reader = await cluster.loggedIn(sleeper)
  await until(
    'the sleeper has it all',
    async () => (await allServices(reader)).size === writes,
    60_000,
  )
  await until('one digest at one index', async () => {
    const statuses = await Promise.all([1, 2, 3].map((k) => cluster.status(k)))
    const own = statuses.map((members, at) => members.find((m) => m.id === `ctrl${at + 1}`))
    return new Set(own.map((m) => `${m?.digestIndex} ${m?.digest}`)).size === 1
  })
  expect(cluster.pid(sleeper)).toBe(pid)
  expect(cluster.logs()).toMatch(/snapshot/i)
})

test('a snapshot that is requested from any controller contains the current state, and can be read', async () => {
  const admins = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
  const [first] = admins
  const body = { name: 'the last one', encryptionRequired: true }
  const made = await first?.request('POST', '/edge/management/v1/services', { body })
  expect(made?.status, made?.text).toBe(201)
  const headers = { 'net-min-index': String(made?.headers['net-index']) }
  for (const [at, admin] of admins.entries()) {
    const data = join(cluster.dir, `net/ctrl${at + 1}/data`)
    const answer = await admin.request('POST', '/fabric/v1/database/snapshot', {
      body: { path: '__DB_DIR__/kept-at-__RAFT_INDEX__' },
      headers,
    })
    expect(answer.status, answer.text).toBe(200)
    const { path } = answer.body.data as { readonly path: string }
    expect(dirname(path)).toBe(join(data, 'snapshots'))
    expect(statSync(path).mode & 0o777).toBe(0o600)
    const open = readdirSync(data, { recursive: true, encoding: 'utf8' }).filter((name) => {
      const file = statSync(join(data, name), { throwIfNoEntry: false })
      return file?.isFile() === true && (file.mode & 0o077) !== 0
    })
    expect(open, 'only the owner may read the data folder').toEqual([])

    const read = { privateKeyPem: null }
    const { manifest, state } = await loadBackup(readFileChunks(path), new MemoryStateStore(), read)
    expect(path.endsWith(`/kept-at-${manifest.index}`)).toBe(true)
    const names = [...state.table('service').rows.values()].map(({ record }) => record.name)
    expect(names).toContain('the last one')
    expect(names.sort()).toEqual([...(await allServices(admin)).values()].sort())

    const again = await admin.request('POST', '/edge/management/v1/database/snapshot')
    expect(again.status).toBe(429)
    expect(readdirSync(join(data, 'snapshots'))).toEqual([basename(path)])
  }
})
