import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { CommandKind, FeatureLevelRaiseSchema } from '../../proto/gen/command_pb.ts'
import { parseAuditedChanges, listHistory } from '../../src/fsm/audit-query.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'
import { auditLimits } from '../../src/fsm/records/audit-line.ts'
import { loadState } from '../../src/fsm/records/load.ts'
import { currentStorePosition } from '../../src/fsm/records/write-behind.ts'
import { HISTORY_FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import type { HistoryQuery, ListResult } from '../../src/ports/state-view.ts'
import { formedState, identity, LogWriter, service } from './support/log.ts'
import { TestStore } from './support/store.ts'

function withHistory() {
  const formed = formedState()
  const raise = create(FeatureLevelRaiseSchema, { level: HISTORY_FEATURE_LEVEL })
  formed.log.command(CommandKind.FEATURE_LEVEL_RAISE, toBinary(FeatureLevelRaiseSchema, raise))
  return formed
}

const everything = { tables: null, isOfRecords: true, limit: 500 } as const

function found(state: ClusterState, query: Partial<HistoryQuery>): ListResult {
  const steps = listHistory(state, { ...everything, ...query })
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return step.value
}

function history(state: ClusterState, query: Partial<HistoryQuery> = {}) {
  const { records } = found(state, query)
  return records.map((entry) => ({
    action: entry['action'],
    name: entry['entityName'],
    ...parseAuditedChanges(entry),
  }))
}

function policy(name: string, serviceRoles: readonly string[]) {
  return { name, type: 'Dial', semantic: 'AnyOf', identityRoles: ['#all'], serviceRoles }
}

describe('the history of a record', () => {
  test('contains the fields before and after each write, even after the record was deleted', () => {
    const { state, log } = withHistory()
    log.create('service', 's1', service('wiki'))
    log.patch('service', 's1', { name: 'docs', roleAttributes: ['web'] })
    log.delete('service', 's1')
    const about = { kind: 'service', id: 's1', isPartial: false }
    const created = { ...about, name: 'wiki', before: null }
    const deleted = { ...about, name: 'docs', after: null }
    const whole = { name: 'docs', roleAttributes: ['web'], terminatorStrategy: 'smartrouting' }
    expect(history(state, { kind: 'service', record: 'wiki' })).toEqual([
      {
        action: 'delete',
        name: 'docs',
        changes: [{ ...deleted, before: expect.objectContaining(whole) as unknown }],
        omitted: 0,
      },
      {
        action: 'patch',
        name: 'docs',
        changes: [
          {
            ...about,
            name: 'docs',
            before: { name: 'wiki', roleAttributes: [] },
            after: { name: 'docs', roleAttributes: ['web'] },
          },
        ],
        omitted: 0,
      },
      {
        action: 'create',
        name: 'wiki',
        changes: [{ ...created, after: expect.objectContaining({ name: 'wiki' }) as unknown }],
        omitted: 0,
      },
    ])
  })

  test('includes a change that a write to another record caused', () => {
    const { state, log } = withHistory()
    log.create('service', 's1', service('wiki'))
    log.create('servicePolicy', 'p1', policy('staff', ['@s1']))
    log.delete('service', 's1')
    const [last] = history(state, { kind: 'servicePolicy', record: 'staff' })
    expect(last?.changes).toEqual([
      expect.objectContaining({ kind: 'service', id: 's1', after: null }),
      {
        kind: 'servicePolicy',
        id: 'p1',
        name: 'staff',
        before: { serviceRoles: ['@s1'] },
        after: { serviceRoles: [] },
        isPartial: false,
      },
    ])
  })

  test('contains no secret, and shows that a secret changed', async () => {
    const { state, log } = withHistory()
    log.create('identity', 'i1', identity('Ann'))
    const password = { identityId: 'i1', method: 'updb', username: 'ann' }
    const [made, changed] = [CommandKind.ENTITY_CREATE, CommandKind.ENTITY_PATCH]
    log.raw(made, 'authenticator', 'a1', { ...password, passwordHash: 'a secret hash' })
    log.raw(changed, 'authenticator', 'a1', { passwordHash: 'another secret hash' })
    const entries = history(state, { record: 'a1' })
    expect(JSON.stringify(entries)).not.toContain('secret')
    expect(entries.map(({ changes }) => changes[0]?.isPartial)).toEqual([true, true])
    const store = new TestStore()
    await store.write(state.takeDirty(), currentStorePosition(state))
    const audit = [...state.audit.newestLines()].join('\n')
    expect(audit).not.toContain('secret')
  })

  test('is stored in the audit log only, and is not part of the audit record that the state machine returns', () => {
    const { log } = withHistory()
    const payload = LogWriter.write('service', 's1', service('wiki'))
    const { audit } = log.command(CommandKind.ENTITY_CREATE, payload)
    expect(audit).toMatchObject({ entityName: 'wiki', change: '' })
  })

  test('can be searched by actor, action, kind and time', () => {
    const { state, log } = withHistory()
    log.create('service', 's1', service('wiki'))
    const firstMs = log.timeMs
    log.timeMs += 60_000
    log.create('identity', 'i1', identity('Ann'))
    log.patch('service', 's1', { roleAttributes: ['x'] })
    const names = (query: Partial<HistoryQuery>) =>
      history(state, query).map(({ action, name }) => `${String(action)} ${String(name)}`)
    expect(names({ action: 'update' })).toEqual(['patch wiki'])
    expect(names({ kind: 'identity', action: 'create' })).toContain('create Ann')
    expect(names({ kind: 'service', untilMs: firstMs })).toEqual(['create wiki'])
    expect(names({ actor: 'test', sinceMs: firstMs + 1 })).toEqual(['patch wiki', 'create Ann'])
    expect(names({ actor: 'nobody' })).toEqual([])
    expect(names({ tables: new Set(['identity']), record: 'wiki' })).toEqual([])
  })

  test('shows that a change was too large to retain, with the names of the changed fields', () => {
    const { state, log } = withHistory()
    const data = { text: 'x'.repeat(auditLimits.changeCharactersMax) }
    log.create('configType', 't1', { name: 'type' })
    log.create('config', 'c1', { name: 'wiki', configTypeId: 't1', data: {} })
    log.patch('config', 'c1', { data })
    const { records } = found(state, { record: 'c1' })
    expect(records[0]).toMatchObject({ fields: ['data'], change: '"TOO_LARGE"' })
  })

  test('contains neither changes nor record names for log entries below feature level 3', () => {
    const { state, log } = withHistory()
    state.featureLevel = HISTORY_FEATURE_LEVEL - 1
    log.create('service', 's1', service('wiki'))
    state.featureLevel = HISTORY_FEATURE_LEVEL
    expect(history(state, { record: 'wiki' })).toEqual([
      { action: 'create', name: '', changes: [], omitted: 0 },
    ])
  })
})

describe('the changes of records that the audit log retains', () => {
  test('are unchanged by a restart, and further entries lead to the same state digest as without the restart', async () => {
    const store = new TestStore()
    const { state, log } = withHistory()
    const large = (at: number) => ({ note: `${at}`.padEnd(9_000, 'x') })
    log.create('configType', 't1', { name: 'type' })
    for (let at = 0; at < 40; at += 1) {
      log.create('config', `c${at}`, { name: `c${at}`, configTypeId: 't1', data: large(at) })
      log.patch('config', `c${at}`, { name: `d${at}` })
      if (at % 9 === 0) await store.write(state.takeDirty(), currentStorePosition(state))
    }
    await store.write(state.takeDirty(), currentStorePosition(state))
    const loaded = await loadState(store, new ClusterState())
    expect(loaded.stateDigest()).toBe(state.stateDigest())
    expect(loaded.isDigestRight('state')).toBe(true)
    expect(history(loaded)).toEqual(history(state))
    const more = { actor: 'a', actorName: '', session: '', address: '', action: 'create' }
    const what = { entity: 'service', entityId: 'x', entityName: 'x', outcome: 'done', reason: '' }
    for (const one of [state, loaded]) {
      for (let index = 1000; index < 1200; index += 1) {
        const text = JSON.stringify([{ kind: 'service', id: 'x', name: 'y'.repeat(700) }])
        one.remember({ index, atMs: 1, ...more, ...what, fields: [], also: [], change: text })
        one.forget()
      }
    }
    expect(loaded.stateDigest()).toBe(state.stateDigest())
  })

  test('include all writes of a batch, but none of a refused batch', () => {
    const { state, log } = withHistory()
    log.batch(
      [
        [CommandKind.ENTITY_CREATE, 'service', 'a', service('a')],
        [CommandKind.ENTITY_CREATE, 'identity', 'b', identity('B')],
      ],
      1,
    )
    log.batch(
      [
        [CommandKind.ENTITY_CREATE, 'service', 'c', service('c')],
        [CommandKind.ENTITY_CREATE, 'service', 'a', service('a')],
      ],
      1,
    )
    log.patch('service', 'a', { roleAttributes: ['later'] })
    const [patched, refused, created] = history(state)
    expect(created?.changes.map(({ kind }) => kind)).toEqual(['identity', 'service'])
    expect(refused?.changes).toEqual([])
    expect(patched?.changes.map(({ id }) => id)).toEqual(['a'])
  })
})
