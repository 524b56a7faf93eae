import { describe, expect, test } from 'vitest'
import type { KindName } from '../../src/entities/kind-records.ts'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import { formedState, type LogWriter, service, startMs } from './support/log.ts'

function hosted(log: LogWriter, id: string, changes: JsonObject = {}, kind = 'terminator') {
  const fields = { serviceId: 's1', routerId: 'r1', address: 'tcp:host:80', ...changes }
  return log.raw(CommandKind.ENTITY_CREATE, kind, id, fields)
}

function network(): ReturnType<typeof formedState> {
  const formed = formedState()
  formed.log.create('service', 's1', service('web'))
  formed.log.create('edgeRouter', 'r1', { name: 'gate' })
  formed.log.create('fabricRouter', 'r2', { name: 'core', cost: 0, noTraversal: false })
  const fabricOnly = { name: 'inner', isFabricOnly: true }
  formed.log.raw(CommandKind.ENTITY_CREATE, 'fabricService', 's2', fabricOnly)
  return formed
}

describe('a terminator', () => {
  test.each([
    [{ serviceId: 'nowhere' }],
    [{ routerId: 'nowhere' }],
    [{ serviceId: '' }],
    [{ routerId: '' }],
    [{ serviceId: 's2' }],
  ])(
    'cannot be created if its router is missing, or if its service is missing or fabric-only: %j',
    (changes) => {
      const { log } = network()
      expect(hosted(log, 't1', changes)).toMatchObject({ ok: false, code: 'NOT_FOUND' })
    },
  )

  test('is deleted when its service or its router is deleted', () => {
    const { log, state } = network()
    hosted(log, 't1')
    hosted(log, 't2', { routerId: 'r2' })
    expect(log.delete('fabricRouter', 'r2').ok).toBe(true)
    expect(state.get('terminator', 't2')).toBeUndefined()
    expect(log.delete('service', 's1').ok).toBe(true)
    expect(state.get('terminator', 't1')).toBeUndefined()
  })

  test.each([
    ['service', 'fabricService', 's2'],
    ['router', 'fabricRouter', 'r2'],
  ])('that is fabric-only is deleted when its %s is deleted', (_what, kind, id) => {
    const { log, state } = network()
    const fields = { serviceId: 's2', routerId: 'r2' }
    expect(hosted(log, 't1', fields, 'fabricTerminator').ok).toBe(true)
    expect(log.delete(kind, id).ok).toBe(true)
    expect(state.get('fabricTerminator', 't1')).toBeUndefined()
  })

  test('that its router created can be deleted through the API, but not changed', () => {
    const { log, state } = network()
    hosted(log, 't1')
    state.put('terminator', { ...state.get('terminator', 't1'), id: 't1', isSystem: true })
    for (const kind of ['terminator', 'fabricTerminator']) {
      expect(log.patch(kind, 't1', { cost: 3 })).toMatchObject({
        ok: false,
        code: 'ENTITY_CAN_NOT_BE_UPDATED',
      })
    }
    expect(log.delete('terminator', 't1').ok).toBe(true)
  })

  test('is shown by the fabric API, but not by the management API, if its service is fabric-only', () => {
    const { log, state } = network()
    hosted(log, 't1')
    expect(hosted(log, 't2', { serviceId: 's2' }, 'fabricTerminator').ok).toBe(true)
    expect(state.get('terminator', 't2')).toBeUndefined()
    expect(log.patch('terminator', 't2', { cost: 3 })).toMatchObject({ code: 'NOT_FOUND' })
    expect(log.patch('fabricTerminator', 't2', { cost: 3 }).ok).toBe(true)
    expect(state.get('fabricTerminator', 't2')).toMatchObject({
      cost: 3,
      isFabricOnly: true,
      createdAt: startMs,
    })
    const reader = new StateReader(state, { nowMs: () => startMs, monotonicMs: () => 0 })
    const ids = (kind: KindName) => reader.list(kind, {}).records.map(({ id }) => id)
    expect(ids('terminator')).toEqual(['t1'])
    expect(ids('fabricTerminator')).toEqual(['t1', 't2'])
    expect(ids('service')).toEqual(['s1'])
    expect(ids('fabricService')).toEqual(['s1', 's2'])
  })
})
