import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { ClusterActionSchema, CommandKind } from '../../proto/gen/command_pb.ts'
import { auditLimits } from '../../src/fsm/records/audit-line.ts'
import { auditQueryLimits, listAudit } from '../../src/fsm/audit-query.ts'
import { loadState } from '../../src/fsm/records/load.ts'
import { currentStorePosition } from '../../src/fsm/records/write-behind.ts'
import type { ListQuery } from '../../src/ports/state-view.ts'
import { type Actor, createSystemActor } from '../../src/ports/actor.ts'
import { anySession } from '../support/commands.ts'
import { formedState, identity, service } from './support/log.ts'
import { TestStore } from './support/store.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

const actor = anySession({ sessionId: 's1', address: '10.0.0.1', permission: 'admin' })

/** Opens the session of the actor that the tests use. */
function withSession() {
  const formed = formedState()
  formed.log.logIn('s1')
  return formed
}

function list(state: ClusterState, query: ListQuery = {}) {
  return listAudit(state.audit, query, () => Promise.resolve())
}

async function newest(state: ClusterState): Promise<Readonly<Record<string, unknown>>> {
  return (await list(state, { limit: 1 })).records[0] ?? {}
}

describe('the audit record of a write', () => {
  test('contains the actor, the address, the record, the time and the result', async () => {
    const { state, log } = withSession()
    log.create('service', 'mail', service('mail'), { actor })
    expect(await newest(state)).toMatchObject({
      index: log.entries.length,
      at: log.timeMs,
      actor: 'admin',
      actorName: 'Default Admin',
      session: 's1',
      address: '10.0.0.1',
      action: 'create',
      entity: 'service',
      entityId: 'mail',
      fields: [],
      also: [],
      outcome: 'done',
    })
    log.patch('service', 'mail', { name: 'post', roleAttributes: [] }, { actor })
    expect(await newest(state)).toMatchObject({ action: 'patch', fields: ['name'] })
    log.patch('service', 'none', { name: 'x' }, { actor })
    expect(await newest(state)).toMatchObject({ entityId: 'none', outcome: 'NOT_FOUND' })
    log.delete('service', 'mail')
    expect(await newest(state)).toMatchObject({ action: 'delete', actor: 'test', entityId: 'mail' })
    log.disable('admin', 0)
    expect(await newest(state)).toMatchObject({ action: 'identity-disable' })
    log.logIn('session')
    expect(await newest(state)).toMatchObject({ action: 'session-create', actor: 'admin' })
  })

  test('also exists for actions on the cluster, with actor, action, time and result', async () => {
    const { state, log } = withSession()
    const told = (
      content: { target?: string; outcome?: string; reason?: string; action?: string },
      by: Actor = actor,
    ) => {
      const message = create(ClusterActionSchema, { action: 'member-demote', ...content })
      const payload = toBinary(ClusterActionSchema, message)
      return log.command(CommandKind.CLUSTER_ACTION, payload, { actor: by }).outcome
    }
    told({ target: 'ctrl2', outcome: 'requested' })
    const named = { action: 'member-demote', entity: 'controller', entityId: 'ctrl2' }
    expect(await newest(state)).toMatchObject({ ...named, actor: 'admin', outcome: 'requested' })
    const root = createSystemActor({ name: 'uid:0 (root)' })
    told({ target: 'ctrl2', outcome: 'TOLERANCE_REFUSED', reason: 'a reason' }, root)
    expect(await newest(state)).toMatchObject({
      ...named,
      actor: 'uid:0 (root)',
      actorName: 'uid:0 (root)',
      outcome: 'TOLERANCE_REFUSED',
      reason: 'a reason',
    })
    for (const bad of [{ action: 'a"b' }, { outcome: 'a"b' }, { target: 'a"b' }]) {
      const outcome = told({ outcome: 'done', ...bad })
      expect(outcome).toMatchObject({ ok: false, code: 'COULD_NOT_VALIDATE' })
      expect(await newest(state)).toMatchObject({ outcome: 'COULD_NOT_VALIDATE', entity: '' })
    }
  })

  test('lists all records that one log entry wrote, but no field value', async () => {
    const { state, log } = formedState()
    log.batch(
      [
        [CommandKind.ENTITY_CREATE, 'service', 'a', service('secret name')],
        [CommandKind.ENTITY_CREATE, 'identity', 'b', identity('B')],
      ],
      1,
    )
    const record = await newest(state)
    expect(record).toMatchObject({ entity: 'identity', entityId: 'b', also: ['create service a'] })
    expect(JSON.stringify(record)).not.toContain('secret name')
  })

  test('does not exist for session activity', async () => {
    const { state, log } = formedState()
    log.logIn('session')
    const { size } = state.audit
    log.touch('session', log.timeMs + 1)
    expect(state.audit.size).toBe(size)
  })
})

describe('the list of audit records', () => {
  test('can be filtered, sorted and paged over all audit records', async () => {
    const { state, log } = withSession()
    const { size } = state.audit
    for (let i = 0; i < 200; i += 1) log.create('service', `s${i}`, service(`s${i}`), { actor })
    for (let i = 0; i < 50; i += 1) log.delete('service', `s${i}`)
    const all = await list(state, { limit: 7, offset: 13 })
    expect(all.totalCount).toBe(size + 250)
    expect(all.records.map(({ revision }) => revision)).toEqual(
      Array.from({ length: 7 }, (_, i) => log.entries.length - 13 - i),
    )
    const deleted = await list(state, { filter: 'action = "delete"', limit: 500 })
    expect(deleted.records).toHaveLength(50)
    const one = await list(state, { filter: 'entityId = "s7" and actor = "admin"' })
    expect(one.records.map(({ id }) => id)).toEqual([String(log.entries.length - 242)])
    const first = await list(state, { filter: 'entity = "service"', sort: 'index asc', limit: 1 })
    expect(first.records[0]).toMatchObject({ entityId: 's0', action: 'create' })
    expect(first.totalCount).toBe(250)
    await expect(list(state, { filter: 'nothing = 1' })).rejects.toMatchObject({
      code: 'INVALID_FILTER',
    })
  })

  test('is complete if the request sets no limit, or refused if it is too long', async () => {
    const { state, log } = withSession()
    const queries = [{ limit: -1 }, { filter: 'true limit none' }]
    for (let i = 0; i < 600; i += 1) log.create('service', `s${i}`, service(`s${i}`), { actor })
    for (const query of queries) {
      const { records, ...paging } = await list(state, query)
      const totalCount = state.audit.size
      expect(paging).toEqual({ limit: -1, offset: 0, totalCount })
      expect(records).toHaveLength(totalCount)
    }
    const { unpagedRowsMax } = auditQueryLimits
    for (let i = 600; i <= unpagedRowsMax; i += 1) {
      log.create('service', `s${i}`, service(`s${i}`), { actor })
    }
    for (const query of queries) {
      await expect(list(state, query)).rejects.toMatchObject({
        code: 'COULD_NOT_VALIDATE',
        fault: { field: 'limit' },
      })
    }
  })
})

describe('the audit log', () => {
  test('is the same after a restart, including the state digests', async () => {
    const store = new TestStore()
    const { state, log } = withSession()
    for (let i = 0; i < 150; i += 1) {
      log.create('service', `s${i}`, service(`s${i}`), { actor })
      if (i % 40 === 0) await store.write(state.takeDirty(), currentStorePosition(state))
    }
    await store.write(state.takeDirty(), currentStorePosition(state))
    const loaded = await loadState(store, new ClusterState())
    expect((await list(loaded, { limit: 500 })).records).toEqual(
      (await list(state, { limit: 500 })).records,
    )
    expect(loaded.stateDigest()).toBe(state.stateDigest())
    expect(loaded.isDigestRight('state')).toBe(true)
  })

  test('evicts old records from memory and from the store', async () => {
    const store = new TestStore()
    const { state, log } = formedState()
    for (let i = 0; i < 200; i += 1) log.create('service', `s${i}`, service(`s${i}`))
    await store.write(state.takeDirty(), currentStorePosition(state))
    log.timeMs += auditLimits.ageMsMax + 1
    for (let i = 0; i < 10; i += 1) log.create('service', `t${i}`, service(`t${i}`))
    expect(state.audit.size).toBeLessThan(64 + 20)
    await store.write(state.takeDirty(), currentStorePosition(state))
    const loaded = await loadState(store, new ClusterState())
    expect(loaded.audit.size).toBe(state.audit.size)
    expect(loaded.stateDigest()).toBe(state.stateDigest())
  })

  test('has a limited number of records', () => {
    const state = new ClusterState()
    for (let index = 1; index <= auditLimits.recordsMax + 1000; index += 1) {
      const who = { actor: 'a', actorName: 'A', session: 's', address: '' }
      const what = {
        action: 'create',
        entity: 'service',
        entityId: `s${index}`,
        outcome: 'done',
        entityName: '',
        change: '',
      }
      state.remember({ index, atMs: index, ...who, ...what, fields: [], also: [], reason: '' })
      state.forget()
    }
    expect(state.audit.size).toBeGreaterThanOrEqual(auditLimits.recordsMax)
    expect(state.audit.size).toBeLessThan(auditLimits.recordsMax + 2 * auditLimits.blockRecords)
    expect(state.isDigestRight('state')).toBe(true)
  })
})
