import { describe, expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { LogWriter, formedState, identity, policy, service, startMs } from './support/log.ts'

function fault(field: string, reason: string, value?: unknown): unknown {
  const whole = value === undefined ? { field, reason } : { field, reason, value }
  return { ok: false, code: 'COULD_NOT_VALIDATE', fault: whole, detail: null }
}
function notFound(detail: string): unknown {
  return { ok: false, code: 'NOT_FOUND', fault: null, detail }
}

describe('The commands that the state machine refuses', () => {
  test('include a create, replace or patch with a duplicate service name, and change nothing', () => {
    const { state, log } = formedState()
    log.create('service', 's1', service('one'))
    log.create('service', 's2', service('two'))
    const refusal = fault('name', 'name must be unique', 'one')
    expect(log.create('service', 's3', service('one'))).toEqual(refusal)
    expect(log.replace('service', 's2', { name: 'one' })).toEqual(refusal)
    expect(log.patch('service', 's2', { name: 'one' })).toEqual(refusal)
    expect(state.get('service', 's2')?.name).toBe('two')
    expect(state.table('service').rows.size).toBe(2)
  })

  test('include a duplicate identity name, with OpenZiti’s message', () => {
    const { log } = formedState()
    log.create('identity', 'i1', identity('ann'))
    const reason = `duplicate value 'ann' in unique index on identities store`
    expect(log.create('identity', 'i2', identity('ann'))).toEqual(fault('name', reason, 'ann'))
  })

  test('do not include a PUT in which a record keeps its own name', () => {
    const { log } = formedState()
    log.create('service', 's1', service('one'))
    expect(log.replace('service', 's1', { name: 'one' })).toEqual({ ok: true, id: 's1' })
  })

  test('do not include a command with a name that is free again after a rename or a deletion', () => {
    const { log } = formedState()
    log.create('service', 's1', service('one'))
    log.patch('service', 's1', { name: 'uno' })
    expect(log.create('service', 's2', service('one')).ok).toBe(true)
    log.delete('service', 's2')
    expect(log.create('service', 's3', service('one')).ok).toBe(true)
  })

  test('include a create with an id that is in use', () => {
    const { log } = formedState()
    log.create('service', 's1', service('one'))
    expect(log.create('service', 's1', service('two'))).toEqual(
      fault('id', 'id must be unique', 's1'),
    )
  })

  test('include a write to an unknown record, with NOT_FOUND', () => {
    const { log } = formedState()
    const refusal = notFound('service with id nope not found')
    expect(log.replace('service', 'nope', { name: 'x' })).toEqual(refusal)
    expect(log.patch('service', 'nope', {})).toEqual(refusal)
    expect(log.delete('service', 'nope')).toEqual(refusal)
    expect(log.logOut('nope')).toEqual(notFound('apiSession with id nope not found'))
  })

  test('include a reference to an unknown record, with NOT_FOUND', () => {
    const { log } = formedState()
    const body = { ...service('one'), configs: ['c1'] }
    expect(log.create('service', 's1', body)).toEqual(notFound('config with id c1 not found'))
    const other = { ...identity('ann'), authPolicyId: 'p9' }
    expect(log.create('identity', 'i1', other)).toEqual(notFound('authPolicy with id p9 not found'))
    const costs = { ...identity('ann'), serviceHostingCosts: { s9: 3 } }
    expect(log.create('identity', 'i1', costs)).toEqual(notFound('service with id s9 not found'))
  })

  test('include, with the field, a create or patch that contains a role with an unknown id', () => {
    const { log } = formedState()
    const reason = 'no identities found with the given ids'
    const refusal = fault('identityRoles', reason, ['x', 'y'])
    expect(log.create('servicePolicy', 'p1', policy('p', ['@x', '@admin', '@y'], []))).toEqual(
      refusal,
    )
    log.create('servicePolicy', 'p1', policy('p', [], []))
    expect(log.patch('servicePolicy', 'p1', { identityRoles: ['@x', '@y'] })).toEqual(refusal)
    const checks = policy('q', [], [], { postureCheckRoles: ['@c'] })
    expect(log.create('servicePolicy', 'p2', checks)).toEqual(
      fault('postureCheckRoles', 'no postureChecks found with the given ids', ['c']),
    )
  })

  test.each([
    [{ serviceRoles: ['plain'] }, 'serviceRoles'],
    [{ serviceRoles: ['#all', '#x'] }, 'serviceRoles'],
    [{ serviceRoles: 'text' }, 'serviceRoles'],
    [{ serviceRoles: [7] }, 'serviceRoles'],
    [{ name: '' }, 'name'],
    [{ name: 7 }, 'name'],
    [{ name: null }, 'name'],
    [{ tags: { a: { b: 1 } } }, 'tags'],
    [{ tags: [] }, 'tags'],
  ])(
    'include invalid input that the proposer should have rejected, and cause no exception: %j',
    (fields, field) => {
      const { log, state } = formedState()
      log.create('servicePolicy', 'p1', policy('p', [], []))
      const before = state.get('servicePolicy', 'p1')
      const outcome = log.raw(CommandKind.ENTITY_PATCH, 'servicePolicy', 'p1', fields)
      expect(outcome).toMatchObject({ ok: false, code: 'COULD_NOT_VALIDATE', fault: { field } })
      expect(state.get('servicePolicy', 'p1')).toBe(before)
    },
  )

  test('include a write of role attributes that begin with # or @ or are empty', () => {
    const { log } = formedState()
    for (const attribute of ['#x', '@x', '']) {
      const fields = { name: 'n', roleAttributes: [attribute] }
      const outcome = log.raw(CommandKind.ENTITY_CREATE, 'service', 's', fields)
      expect(outcome).toMatchObject({ ok: false, fault: { field: 'roleAttributes' } })
    }
  })

  test('do not include a create that sets read-only fields, because the state machine ignores these fields', () => {
    const { log, state } = formedState()
    const fields = { name: 'mallory', isAdmin: false, isDefaultAdmin: true, disabledAt: 5 }
    log.raw(CommandKind.ENTITY_CREATE, 'identity', 'i1', fields)
    expect(state.get('identity', 'i1')).toMatchObject({ isDefaultAdmin: false, disabledAt: null })
  })

  test('include the deletion of protected records and of records that others reference', () => {
    const { log } = formedState()
    expect(log.delete('identity', 'admin')).toMatchObject({ code: 'ENTITY_CAN_NOT_BE_DELETED' })
    expect(log.delete('authPolicy', 'default')).toMatchObject({
      code: 'CAN_NOT_DELETE_REFERENCED_ENTITY',
    })
    expect(log.delete('identityType', 'Default')).toEqual({
      ok: false,
      code: 'CAN_NOT_DELETE_REFERENCED_ENTITY',
      detail: null,
      fault: {
        field: 'typeId',
        reason: 'entity type identityTypes referenced by identities: [admin]',
        value: ['admin'],
      },
    })
    expect(log.delete('identityType', 'Router').ok).toBe(true)
  })

  test('include the formation of a cluster that is already formed', () => {
    const { log, state } = formedState()
    expect(log.form().ok).toBe(false)
    expect(state.clusterId).toBe('cluster')
  })

  test('include a write with an outdated revision, but not a write with the current revision', () => {
    const { log, state } = formedState()
    log.create('service', 's1', service('one'))
    const revision = BigInt(state.get('service', 's1')?.revision ?? 0)
    const judgedOn = [{ entity: 'service', id: 's1', revision }].map((item) => ({
      $typeName: 'flotilla.command.v1.Revision' as const,
      ...item,
    }))
    expect(log.patch('service', 's1', { name: 'two' }, { judgedOn }).ok).toBe(true)
    expect(log.patch('service', 's1', { name: 'three' }, { judgedOn })).toMatchObject({
      code: 'REVISION_MOVED',
    })
    const absent = judgedOn.map((item) => ({ ...item, id: 's2', revision: 0n }))
    expect(log.create('service', 's2', service('next'), { judgedOn: absent }).ok).toBe(true)
    expect(log.delete('service', 's1').ok).toBe(true)
    expect(log.create('service', 's3', service('x'), { judgedOn })).toMatchObject({
      code: 'REVISION_MOVED',
    })
  })
})

describe('a command that writes a record', () => {
  test('takes the times of the record from the log, and keeps in a patch the fields that the patch omits', () => {
    const { log, state } = formedState()
    log.timeMs = startMs + 1000
    log.create('service', 's1', { ...service('one', ['b', 'a', 'b']), tags: { k: 'v' } })
    log.timeMs = startMs + 5000
    log.patch('service', 's1', { name: 'uno', tags: null })
    expect(state.get('service', 's1')).toMatchObject({
      name: 'uno',
      roleAttributes: ['a', 'b'],
      tags: { k: 'v' },
      terminatorStrategy: 'smartrouting',
      encryptionRequired: true,
      createdAt: startMs + 1000,
      updatedAt: startMs + 5000,
    })
  })

  test('clears absent fields in a PUT, and keeps fields that are fixed when the record is created', () => {
    const { log, state } = formedState()
    log.create('service', 's1', { ...service('one', ['a']), tags: { k: 'v' } })
    log.replace('service', 's1', { name: 'uno', encryptionRequired: false })
    expect(state.get('service', 's1')).toMatchObject({
      name: 'uno',
      roleAttributes: [],
      tags: {},
      encryptionRequired: true,
    })
  })

  test('never moves log time back, even if its timestamp is earlier', () => {
    const { log, state } = formedState()
    log.timeMs = startMs - 60_000
    log.create('service', 's1', service('one'))
    expect(state.get('service', 's1')?.createdAt).toBe(startMs)
    expect(state.logTimeMs).toBe(startMs)
  })

  test('removes a deleted identity from the roles of policies, and deletes its authenticators and sessions', () => {
    const { log, state } = formedState()
    log.create('identity', 'i1', identity('ann'))
    log.create('authenticator', 'a1', { identityId: 'i1', method: 'updb', username: 'ann' })
    log.logIn('sess1', 'i1', 'a1')
    log.logIn('sess2')
    log.create('servicePolicy', 'p1', policy('p', ['@admin', '@i1'], []))
    expect(log.delete('identity', 'i1').ok).toBe(true)
    expect(state.get('servicePolicy', 'p1')?.identityRoles).toEqual(['@admin'])
    expect(state.get('authenticator', 'a1')).toBeUndefined()
    expect(state.get('apiSession', 'sess1')).toBeUndefined()
    expect(state.get('apiSession', 'sess2')).toBeDefined()
  })

  test('removes a deleted service from role lists and hosting costs', () => {
    const { log, state } = formedState()
    log.create('service', 's1', service('one'))
    log.create('service', 's2', service('two'))
    log.create('identity', 'i1', { ...identity('ann'), serviceHostingCosts: { s1: 3, s2: 4 } })
    log.create('servicePolicy', 'p1', policy('p', [], ['@s1', '#x']))
    log.delete('service', 's1')
    expect(state.get('servicePolicy', 'p1')).toMatchObject({ serviceRoles: ['#x'] })
    expect(state.get('identity', 'i1')).toMatchObject({ serviceHostingCosts: { s2: 4 } })
  })

  test('stores members with names from Object.prototype like any other data', () => {
    const { log, state } = formedState()
    const tags = JSON.parse('{"__proto__":"a","constructor":"b"}') as Record<string, string>
    expect(log.create('service', 's1', { ...service('one'), tags }).ok).toBe(true)
    const stored = state.get('service', 's1')?.tags ?? {}
    expect(Object.entries(stored).sort()).toEqual([
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ])
    const named = policy('p', ['@constructor'], [])
    expect(log.create('servicePolicy', 'p1', named)).toMatchObject({ ok: false })
  })
})

describe('a command that cannot be decoded', () => {
  test.each([
    ['an unknown command kind', 4711, new Uint8Array()],
    ['a payload that cannot be decoded', CommandKind.ENTITY_CREATE, Uint8Array.of(255, 255, 255)],
    ['an unknown kind of record', CommandKind.ENTITY_CREATE, LogWriter.write('planet', 'x', {})],
  ])('stops the state machine: %s', (_title, kind, payload) => {
    const { log } = formedState()
    expect(() => log.command(kind, payload)).toThrow()
  })

  test('stops the state machine, also if its bytes are not a command at all', () => {
    const { log } = formedState()
    expect(() => log.append('command', Uint8Array.of(255, 1, 2))).toThrow()
  })
})
