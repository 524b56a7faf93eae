import { describe, expect, test } from 'vitest'
import type { KindName } from '../../src/entities/kind-records.ts'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { entities } from '../../src/entities/registry.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import { formedState, identity, policy, service, startMs } from './support/log.ts'

/** A state with records of many kinds, and its reader. */
function filled() {
  const { state, log } = formedState()
  log.create('service', 'mail', {
    ...service('mail "1" \u2028', ['office']),
    tags: { a: null, b: 1 },
  })
  log.create('identity', 'ann', { ...identity('Ann', ['staff']), serviceHostingCosts: { mail: 4 } })
  log.create('identity', 'root', { ...identity('Root'), isAdmin: true })
  log.raw(CommandKind.ENTITY_CREATE, 'enrollment', 'e1', {
    method: 'ott',
    identityId: 'root',
    token: 'secret token',
    jwt: 'j',
    expiresAt: startMs + 60_000,
  })
  log.create('servicePolicy', 'use', policy('use', ['@admin', '#staff'], ['#all']))
  log.create('config', 'host', { name: 'c', configTypeId: 'host.v2', data: { terminators: [] } })
  log.create('edgeRouter', 'r1', { name: 'r1', roleAttributes: ['public'] })
  log.create('fabricRouter', 'core', { name: 'core', cost: 0, noTraversal: false })
  log.logIn('session', 'ann', '')
  let nowMs = startMs + 1
  const reader = new StateReader(state, { nowMs: () => nowMs, monotonicMs: () => 0 })
  const later = (ms: number): void => {
    nowMs += ms
  }
  const textOf = (kind: KindName, id: string, callerId = 'admin'): unknown =>
    JSON.parse(reader.detailSerializer(kind, callerId)(requirePresent(state.get(kind, id), id)))
  return { state, log, reader, later, textOf }
}

describe('The cached JSON text of a record’s details', () => {
  test('equals the serialized details, both when it is created and when it is read from the cache', () => {
    const { state, reader } = filled()
    let shown = 0
    for (const round of ['printed', 'kept']) {
      for (const { name } of entities) {
        for (const { record } of state.table(name).rows.values()) {
          for (const callerId of ['admin', 'ann', 'nobody']) {
            const detail = JSON.stringify(reader.detail(name, record, callerId))
            const serialize = reader.detailSerializer(name, callerId)
            expect(serialize(record), `${round} ${name}`).toBe(detail)
            shown += 1
          }
        }
      }
    }
    expect(shown).toBeGreaterThan(200)
  })

  test('changes if the record or a referenced record changes', () => {
    const { log, textOf } = filled()
    expect(textOf('service', 'mail')).toMatchObject({ permissions: ['Dial'] })
    log.create('servicePolicy', 'host', policy('host', ['@admin'], ['@mail'], { type: 'Bind' }))
    expect(textOf('service', 'mail')).toMatchObject({ permissions: ['Bind', 'Dial'] })
    expect(textOf('service', 'mail', 'ann')).toMatchObject({ permissions: ['Dial'] })
    log.patch('service', 'mail', { name: 'post' })
    expect(textOf('service', 'mail')).toMatchObject({ name: 'post' })
    expect(textOf('apiSession', 'session')).toMatchObject({ identity: { name: 'Ann' } })
    log.patch('identity', 'ann', { name: 'Anna' })
    expect(textOf('apiSession', 'session')).toMatchObject({ identity: { name: 'Anna' } })
  })

  test('changes when a time passes that a detail depends on, such as disabledUntil', () => {
    const { state, later, textOf } = filled()
    const until = startMs + 1000
    const ann = { ...state.get('identity', 'ann'), id: 'ann' }
    state.put('identity', { ...ann, disabledAt: startMs, disabledUntil: until })
    expect(textOf('identity', 'ann')).toMatchObject({ disabled: true })
    later(1000)
    expect(textOf('identity', 'ann')).toMatchObject({ disabled: false })
  })

  test('hides an administrator’s enrollment from other callers, even after an administrator read it', () => {
    const { state, reader, textOf } = filled()
    const root = requirePresent(state.get('identity', 'root'), 'root')
    expect(textOf('identity', 'root')).toMatchObject({
      enrollment: { ott: { token: 'secret token' } },
    })
    expect(reader.detail('identity', root, 'ann')['enrollment']).toEqual({})
    expect(textOf('identity', 'root', 'ann')).toMatchObject({ enrollment: {} })
    expect(JSON.stringify(textOf('identity', 'root', 'ann'))).not.toContain('secret')
  })
})
