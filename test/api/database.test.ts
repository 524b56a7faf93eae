import { existsSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind, IntegrityClaimSchema } from '../../proto/gen/command_pb.ts'
import { StateMachine } from '../../src/fsm/state-machine.ts'
import { MemoryStateStore } from '../../src/store/state/memory-state-store.ts'
import { readFileChunks } from '../../src/backup/backup-files.ts'
import { loadBackup } from '../../src/backup/load-backup.ts'
import { snapshotFileLimits } from '../../src/controller/backups/snapshot-folder.ts'
import { CallerOf, fabric, management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { SYSTEM_ACTOR } from '../../src/ports/actor.ts'

const { controller, root } = await controllerForFile()

const database = `${management}/database`

interface Result {
  readonly inProgress: boolean
  readonly fixingErrors: boolean
  readonly startTime: string | null
  readonly endTime: string | null
  readonly error: string
  readonly tooManyErrors: boolean
  readonly results: readonly { readonly description: string; readonly fixed: boolean }[]
}

async function result(base = database): Promise<Result> {
  const reply = await root.get(`${base}/data-integrity-results`)
  expect(reply.status, reply.text).toBe(200)
  return reply.body.data as Result
}

async function ended(): Promise<Result> {
  return await vi.waitUntil(async () => {
    const found = await result()
    return found.inProgress ? null : found
  })
}

describe('the data integrity check', () => {
  test('has no results before it first runs', async () => {
    expect(await result()).toEqual({
      inProgress: false,
      fixingErrors: false,
      startTime: null,
      endTime: null,
      error: '',
      tooManyErrors: false,
      results: [],
    })
  })

  test('reports no fault for a correct state', async () => {
    expect((await root.call('POST', `${database}/check-data-integrity`)).status).toBe(202)
    const found = await ended()
    expect(found).toMatchObject({ error: '', results: [], fixingErrors: false })
    expect(Date.parse(String(found.startTime))).toBeLessThanOrEqual(
      Date.parse(String(found.endTime)),
    )
    expect(await result(`${fabric}/database`)).toEqual(found)
  })

  test('reports damage in the state, repairs it, and then reports no fault', async () => {
    const { state } = controller
    const alice = state.get('identity', 'alice-id')
    state.table('identity').indexes.move('alice-id', alice, undefined)
    expect((await root.call('POST', `${database}/check-data-integrity`)).status).toBe(202)
    const found = await ended()
    expect(found.results.length).toBeGreaterThan(0)
    expect(found.results.every(({ fixed }) => !fixed)).toBe(true)
    const fix = `${fabric}/database/fix-data-integrity`
    expect((await root.call('POST', fix)).status).toBe(202)
    const fixed = await ended()
    expect(fixed.fixingErrors).toBe(true)
    expect(fixed.results).toEqual(found.results.map((one) => ({ ...one, fixed: true })))
    expect((await root.call('POST', `${database}/check-data-integrity`)).status).toBe(202)
    expect((await ended()).results).toEqual([])
  })

  test('has one run at a time, and reports an error for a run whose controller has stopped', async () => {
    const { cluster } = controller
    // Without a leader, no controller starts the check.
    cluster.leader = 'ctrl2'
    expect((await root.call('POST', `${database}/check-data-integrity`)).status).toBe(202)
    for (const what of ['check', 'fix']) {
      const reply = await root.call('POST', `${database}/${what}-data-integrity`)
      expect(reply.status).toBe(429)
      expect(reply.body.error?.code).toBe('RATE_LIMITED')
    }
    const { runId = '' } = controller.machine.get('integrityRun', 'run') ?? {}
    const claim = create(IntegrityClaimSchema, { runId, runner: 'ctrl2 gone' })
    const payload = toBinary(IntegrityClaimSchema, claim)
    await cluster.propose({ kind: CommandKind.INTEGRITY_CLAIM, payload, actor: SYSTEM_ACTOR })
    expect((await result()).inProgress).toBe(true)
    cluster.leader = null
    controller.scheduler.run(controller.parts.limits.integrityLookMs)
    expect((await ended()).error).toMatch(/^ctrl2 stopped before the end/)
  })

  test('is not available to an identity without permissions', async () => {
    const alice = new CallerOf(controller)
    alice.token = controller.openSession('alice-id')
    expect((await alice.call('POST', `${database}/fix-data-integrity`)).status).toBe(401)
    expect((await alice.get(`${database}/data-integrity-results`)).status).toBe(401)
  })
})

describe('a database snapshot', () => {
  const snapshots = (): string => join(controller.dir, 'snapshots')
  const names = (): string[] => (existsSync(snapshots()) ? readdirSync(snapshots()) : [])
  const next = (): void => controller.clock.advance(snapshotFileLimits.pauseMsMin)

  test('is a backup without secrets, from which the identical state can be restored', async () => {
    next()
    const before = names()
    const reply = await root.call('POST', `${database}/snapshot`)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body.data).toEqual({})
    const [name = '', ...others] = names().filter((one) => !before.includes(one))
    expect(others).toEqual([])
    const store = new MemoryStateStore()
    const bytes = readFileChunks(join(snapshots(), name))
    const { manifest, state } = await loadBackup(bytes, store, { privateKeyPem: null })
    expect(manifest).toMatchObject({
      index: controller.machine.appliedIndex,
      clusterId: 'cluster-1',
      hasSecrets: false,
      encryption: null,
    })
    const known = { name: 'Alice', roleAttributes: ['staff'] }
    expect(state.get('identity', 'alice-id')).toMatchObject(known)
    expect(controller.machine.get('identity', 'alice-id')).toMatchObject(known)

    // A store whose records do not have the recorded digests would be refused.
    const machine = await StateMachine.open({ store, clock: controller.clock })
    expect(machine.digests()).toEqual(controller.machine.digests())
    for (const id of ['admin-id', 'alice-id']) {
      expect(machine.get('identity', id)).toEqual(controller.machine.get('identity', id))
    }
    await machine.close()
  })

  test('is written to the path that a request to the fabric API names, and the response contains this path', async () => {
    next()
    const body = { path: '__DB_DIR__/before-upgrade-__RAFT_INDEX__', other: 1 }
    const named = await root.call('POST', `${fabric}/database/snapshot`, body)
    expect(named.status, named.text).toBe(200)
    const { appliedIndex } = controller.machine
    const path = join(snapshots(), `before-upgrade-${appliedIndex}`)
    expect(named.body.data).toEqual({ path })
    expect(named.body.meta?.ignoredFields).toEqual(['other'])
    for (const [url, sent] of [
      ['database', undefined],
      ['database/snapshot', undefined],
      ['database/snapshot', { path: '' }],
      ['database/snapshot', { path: null }],
    ] as const) {
      next()
      const reply = await root.call('POST', `${fabric}/${url}`, sent)
      expect(reply.status, reply.text).toBe(200)
      const { path: told } = reply.body.data as { readonly path: string }
      expect(told).toMatch(/\/snapshots\/state-2026[0-9]{4}-[0-9]{6}$/)
      expect(names()).toContain(basename(told))
    }
  })

  test('is refused on every API for a minute after the previous snapshot', async () => {
    next()
    const before = names()
    expect((await root.call('POST', `${fabric}/database`)).status).toBe(200)
    const after = names()
    expect(after).toHaveLength(before.length + 1)
    for (const url of [database, `${fabric}/database`]) {
      const reply = await root.call('POST', `${url}/snapshot`)
      expect(reply.status).toBe(429)
      expect(reply.body.error?.code).toBe('RATE_LIMITED')
      expect(reply.headers['retry-after']).toBe('60')
    }
    expect(names()).toEqual(after)
  })

  test('can be written only into the folder for snapshots', async () => {
    next()
    const before = names()
    for (const path of [
      '../state/x',
      '/tmp/x',
      'a/b',
      '.x',
      '__DB_DIR__/..',
      7,
      'x'.repeat(1025),
    ]) {
      const reply = await root.call('POST', `${fabric}/database/snapshot`, { path })
      expect(reply.status, String(path)).toBe(400)
      expect(reply.body.error?.cause).toMatchObject({ field: 'path' })
    }
    expect(names()).toEqual(before)
    const all = existsSync(controller.dir) ? readdirSync(controller.dir) : []
    expect(all.filter((name) => name !== 'snapshots')).toEqual([])
  })

  test('is not available to an identity without permissions', async () => {
    next()
    const alice = new CallerOf(controller)
    alice.token = controller.openSession('alice-id')
    for (const url of [
      `${database}/snapshot`,
      `${fabric}/database`,
      `${fabric}/database/snapshot`,
    ]) {
      expect((await alice.call('POST', url)).status).toBe(401)
    }
  })
})

describe('the audit log on the fabric API', () => {
  test('names the administrator who created and changed a record, and refuses an identity without permissions', async () => {
    const body = { name: 'audited', type: 'User', isAdmin: false }
    const made = await root.call('POST', `${management}/identities`, body)
    const { id } = made.body.data as { id: string }
    await root.call('PATCH', `${management}/identities/${id}`, { name: 'renamed' })
    const filter = encodeURIComponent(`entityId = "${id}" and outcome = "done"`)
    const reply = await root.get(`${fabric}/audit?filter=${filter}`)
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body.data).toMatchObject([
      {
        action: 'patch',
        fields: ['name'],
        actor: { id: 'admin-id', name: 'Default Admin' },
        changes: [{ before: { name: 'audited' }, after: { name: 'renamed' } }],
      },
      { action: 'create', entity: 'identity', address: '127.0.0.1' },
    ])
    expect(reply.body.meta?.pagination?.totalCount).toBe(2)
    const alice = new CallerOf(controller)
    alice.token = controller.openSession('alice-id')
    expect((await alice.get(`${fabric}/audit`)).status).toBe(401)
  })
})
