import { describe, expect, test } from 'vitest'
import {
  CommandKind,
  EntityDeleteSchema,
  PasswordAttemptSchema,
  RevisionSchema,
} from '../../proto/gen/command_pb.ts'
import { create, toBinary } from '@bufbuild/protobuf'
import { lockoutLimits } from '../../src/fsm/apply/authentication.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import { noServiceDetailScope } from '../../src/ports/state-view.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import { formedState, identity, type LogWriter, policy, service, startMs } from './support/log.ts'
import { restorableState } from './support/restoring.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

const refusedWith = (code: string, field?: string): object => ({
  ok: false,
  code,
  ...(field === undefined ? {} : { fault: { field } }),
})
const admins = 'it is the last administrator'

function authenticator(log: LogWriter, id: string, fields: JsonObject): unknown {
  return log.raw(CommandKind.ENTITY_CREATE, 'authenticator', id, fields)
}

function updb(identityId: string, username: string): JsonObject {
  return { identityId, method: 'updb', username, passwordHash: '$argon2id$x' }
}

describe('the last administrator who can log in', () => {
  test('cannot be demoted or disabled in any way', () => {
    const { log, state } = formedState()
    const expected = { ok: false, code: 'ENTITY_CAN_NOT_BE_UPDATED', fault: null }
    for (const outcome of [
      log.patch('identity', 'admin', { isAdmin: false }),
      log.replace('identity', 'admin', identity('x')),
      log.raw(CommandKind.ENTITY_REPLACE, 'identity', 'admin', { name: 'x' }),
      log.disable('admin', 5),
    ]) {
      expect(outcome).toMatchObject(expected)
      expect(outcome).toMatchObject({ detail: expect.stringContaining(admins) })
    }
    expect(state.get('identity', 'admin')).toMatchObject({ isAdmin: true, disabledAt: null })
  })

  test('can be demoted once another administrator can log in, who is then protected as the last one', () => {
    const { log } = formedState()
    log.create('identity', 'i1', { ...identity('ann'), isAdmin: true })
    authenticator(log, 'a1', updb('i1', 'anna'))
    expect(log.patch('identity', 'admin', { isAdmin: false }).ok).toBe(true)
    expect(log.patch('identity', 'i1', { isAdmin: false })).toMatchObject({ ok: false })
    expect(log.delete('identity', 'i1')).toMatchObject(refusedWith('ENTITY_CAN_NOT_BE_DELETED'))
  })

  test('stays protected if the only other administrator is disabled', () => {
    const { log } = formedState()
    log.create('identity', 'i1', { ...identity('ann'), isAdmin: true })
    authenticator(log, 'a1', updb('i1', 'anna'))
    expect(log.disable('i1', 10).ok).toBe(true)
    expect(log.patch('identity', 'admin', { isAdmin: false }).ok).toBe(false)
    // The disabling of the other administrator expires by log time, not by the clock of a
    // controller.
    log.timeMs += 10 * 60_000
    expect(log.patch('identity', 'admin', { isAdmin: false }).ok).toBe(true)
  })

  test('cannot be deleted while the only other administrator has no credentials, even if the last one is not the default administrator', () => {
    const { log } = formedState()
    log.create('identity', 'i1', { ...identity('ann'), isAdmin: true })
    expect(log.delete('identity', 'admin')).toMatchObject(refusedWith('ENTITY_CAN_NOT_BE_DELETED'))
    log.raw(CommandKind.ENTITY_PATCH, 'identity', 'admin', { isDefaultAdmin: false })
    expect(log.delete('identity', 'admin').ok).toBe(false)
  })
})

describe('disabling an identity', () => {
  test('ends its sessions in the same log entry, and prevents new sessions until the identity is enabled', () => {
    const { log, state } = formedState()
    log.create('identity', 'i1', identity('ann'))
    authenticator(log, 'a1', updb('i1', 'anna'))
    log.logIn('s1', 'i1', 'a1')
    log.logIn('s2', 'i1', 'a1')
    log.logIn('s3')
    expect(log.disable('i1', 0)).toEqual({ ok: true, id: 'i1' })
    expect([...state.table('apiSession').ids]).toEqual(['s3'])
    const disabled = state.get('identity', 'i1')
    expect(disabled).toMatchObject({ disabledAt: startMs, disabledUntil: null })
    expect(log.logIn('s4', 'i1', 'a1')).toMatchObject(refusedWith('INVALID_AUTH'))
    expect(log.enable('i1').ok).toBe(true)
    expect(log.logIn('s4', 'i1', 'a1').ok).toBe(true)
  })

  test('for a given time ends by log time, and a time above the maximum is reduced', () => {
    const { log, state } = formedState()
    log.create('identity', 'i1', identity('ann'))
    log.disable('i1', 2)
    expect(state.get('identity', 'i1')?.['disabledUntil']).toBe(startMs + 120_000)
    log.disable('i1', Number.MAX_SAFE_INTEGER)
    const until = state.get('identity', 'i1')?.disabledUntil ?? NaN
    expect(Number.isNaN(new Date(until).getTime())).toBe(false)
  })

  test('returns NOT_FOUND for an unknown identity', () => {
    const { log } = formedState()
    expect(log.disable('nope', 0)).toMatchObject(refusedWith('NOT_FOUND'))
    expect(log.enable('nope')).toMatchObject(refusedWith('NOT_FOUND'))
  })
})

describe('an authenticator', () => {
  test('is refused if its identity already has one with the same method, if its user name is in use, or if its identity does not exist', () => {
    const { log } = formedState()
    log.create('identity', 'i1', identity('ann'))
    log.create('identity', 'i2', identity('ben'))
    expect(authenticator(log, 'a1', updb('i1', 'anna'))).toEqual({ ok: true, id: 'a1' })
    expect(authenticator(log, 'a2', updb('i1', 'other'))).toMatchObject(
      refusedWith('MAX_AUTHENTICATOR_METHODS_REACHED'),
    )
    expect(authenticator(log, 'a2', updb('i2', 'anna'))).toMatchObject({
      fault: { field: 'username', reason: 'username must be unique' },
    })
    expect(authenticator(log, 'a2', updb('nobody', 'other'))).toMatchObject(
      refusedWith('NOT_FOUND'),
    )
  })

  test('of the method updb always has a user name and a password hash', () => {
    const { log, state } = formedState()
    log.create('identity', 'i1', identity('ann'))
    const { passwordHash, ...nameOnly } = updb('i1', 'anna')
    expect(authenticator(log, 'a1', nameOnly)).toMatchObject({ fault: { field: 'password' } })
    expect(
      authenticator(log, 'a1', { ...nameOnly, username: null, passwordHash: 'x' }),
    ).toMatchObject({
      fault: { field: 'username' },
    })
    expect(authenticator(log, 'a1', { identityId: 'i1', method: 'face' })).toMatchObject({
      fault: { field: 'method' },
    })
    authenticator(log, 'a1', updb('i1', 'anna'))
    const patch = log.raw(CommandKind.ENTITY_PATCH, 'authenticator', 'a1', { username: null })
    expect(patch).toMatchObject({ fault: { field: 'username' } })
    log.raw(CommandKind.ENTITY_PATCH, 'authenticator', 'a1', {
      identityId: 'admin',
      method: 'cert',
    })
    expect(state.get('authenticator', 'a1')).toMatchObject({ identityId: 'i1', method: 'updb' })
    log.raw(CommandKind.ENTITY_REPLACE, 'authenticator', 'a1', { username: 'anna2', tags: {} })
    expect(state.get('authenticator', 'a1')).toMatchObject({ passwordHash, username: 'anna2' })
  })

  test('that is deleted ends the sessions that it opened; an authenticator is deleted together with its identity', () => {
    const { log, state } = formedState()
    log.create('identity', 'i1', identity('ann'))
    authenticator(log, 'a1', updb('i1', 'anna'))
    log.logIn('s1', 'i1', 'a1')
    expect(log.delete('authenticator', 'a1').ok).toBe(true)
    expect(state.get('apiSession', 's1')).toBeUndefined()
    authenticator(log, 'a2', updb('i1', 'anna'))
    log.logIn('s2', 'i1', 'a2')
    expect(log.delete('identity', 'i1').ok).toBe(true)
    expect(state.get('authenticator', 'a2')).toBeUndefined()
    expect(state.get('apiSession', 's2')).toBeUndefined()
  })
})

/**
 * Two services, configs of two types for services (two of the first type, one of the second), and a
 * config for routers.
 */
function withConfigs(): { readonly state: ClusterState; readonly log: LogWriter } {
  const made = formedState()
  const { log } = made
  const config = (id: string, configTypeId: string, data: JsonObject): unknown =>
    log.create('config', id, { name: id, configTypeId, data })
  config('c1', 'proxy.v1', { port: 1 })
  config('c2', 'proxy.v1', { port: 2 })
  config('c3', 'interfaces.v1', { interfaces: [] })
  config('r1', 'router.link.v1', {})
  log.create('service', 's1', { ...service('one'), configs: ['c1', 'c3'] })
  log.create('service', 's2', service('two'))
  log.create('identity', 'i1', identity('ann'))
  return made
}

describe('the configs of a service', () => {
  test('must exist, must target services, and must have different types', () => {
    const { log, state } = withConfigs()
    const configs = (ids: readonly string[]): unknown =>
      log.patch('service', 's2', { configs: ids })
    expect(configs(['nope'])).toMatchObject(refusedWith('NOT_FOUND'))
    expect(configs(['r1'])).toMatchObject(refusedWith('COULD_NOT_VALIDATE', 'configs'))
    expect(configs(['c1', 'c2'])).toMatchObject(refusedWith('COULD_NOT_VALIDATE', 'configs'))
    expect(state.get('service', 's2')?.['configs']).toEqual([])
    expect(configs(['c2', 'c3'])).toMatchObject({ ok: true })
    expect(log.create('service', 's3', { ...service('three'), configs: ['r1'] })).toMatchObject({
      fault: { field: 'configs' },
    })
    expect(log.replace('service', 's2', { name: 'two', configs: ['c1', 'c2'] })).toMatchObject({
      fault: { field: 'configs' },
    })
  })

  test('are removed from the service when they are deleted; a type with configs cannot be deleted', () => {
    const { log, state } = withConfigs()
    expect(log.delete('config', 'c1').ok).toBe(true)
    expect(state.get('service', 's1')?.['configs']).toEqual(['c3'])
    expect(log.delete('configType', 'interfaces.v1')).toMatchObject(
      refusedWith('CAN_NOT_DELETE_REFERENCED_ENTITY', 'configTypeId'),
    )
    log.delete('config', 'c3')
    expect(log.delete('configType', 'interfaces.v1').ok).toBe(true)
  })

  test('cannot change their type, a type cannot change its target, and no type may have the name `all`', () => {
    const { log, state } = withConfigs()
    log.raw(CommandKind.ENTITY_PATCH, 'config', 'c1', { configTypeId: 'interfaces.v1' })
    expect(state.get('config', 'c1')?.['configTypeId']).toBe('proxy.v1')
    log.raw(CommandKind.ENTITY_PATCH, 'configType', 'proxy.v1', { target: 'router' })
    expect(state.get('configType', 'proxy.v1')?.['target']).toBe('service')
    expect(log.create('configType', 't', { name: 'all' })).toMatchObject({
      fault: { field: 'name' },
    })
    expect(log.patch('configType', 'proxy.v1', { name: 'all' })).toMatchObject({ ok: false })
  })

  test('are refused if they were validated with an outdated schema of the type', () => {
    const { log, state } = withConfigs()
    const revision = state.get('configType', 'proxy.v1')?.revision ?? 0
    const judgedOn = [
      create(RevisionSchema, { entity: 'configType', id: 'proxy.v1', revision: BigInt(revision) }),
    ]
    const body = { name: 'c9', configTypeId: 'proxy.v1', data: {} }
    log.patch('configType', 'proxy.v1', { schema: { type: 'object', required: ['port'] } })
    expect(log.create('config', 'c9', body, { judgedOn })).toMatchObject(
      refusedWith('REVISION_MOVED'),
    )
    expect(state.get('config', 'c9')).toBeUndefined()
  })
})

describe('the config overrides of an identity', () => {
  const shown = (
    state: ClusterState,
    serviceId: string,
    caller: string,
    types: string[] | 'all',
  ): unknown => {
    const reader = new StateReader(state, { nowMs: () => startMs, monotonicMs: () => 0 })
    const record = state.get('service', serviceId)
    if (record === undefined) throw new Error('no record')
    const configTypes = types === 'all' ? types : new Set(types)
    return reader.detail('service', record, caller, { ...noServiceDetailScope, configTypes })[
      'config'
    ]
  }

  test('replace for this identity the service’s config of the same type, or add one if the service has none', () => {
    const { log, state } = withConfigs()
    log.create('servicePolicy', 'p', policy('p', ['#all'], ['#all']))
    expect(
      log.serviceConfigs('associate', 'i1', [
        ['s1', 'c2'],
        ['s2', 'c1'],
      ]),
    ).toEqual({ ok: true, id: 'i1' })
    expect(shown(state, 's1', 'i1', 'all')).toEqual({
      'interfaces.v1': { interfaces: [] },
      'proxy.v1': { port: 2 },
    })
    expect(shown(state, 's1', 'i1', ['interfaces.v1'])).toEqual({
      'interfaces.v1': { interfaces: [] },
    })
    expect(shown(state, 's2', 'i1', ['proxy.v1'])).toEqual({ 'proxy.v1': { port: 1 } })
    expect(shown(state, 's1', 'admin', 'all')).toMatchObject({ 'proxy.v1': { port: 1 } })
    expect(shown(state, 's2', 'admin', 'all')).toEqual({})
    expect(shown(state, 's1', 'i1', [])).toEqual({})
  })

  test('exist once per service and config type: a second override replaces the first', () => {
    const { log, state } = withConfigs()
    log.serviceConfigs('associate', 'i1', [['s1', 'c1']])
    log.serviceConfigs('associate', 'i1', [['s1', 'c2']])
    expect(state.table('serviceConfig').rows.size).toBe(1)
    expect(shown(state, 's1', 'i1', 'all')).toMatchObject({ 'proxy.v1': { port: 2 } })
    // Configs are removed by type: the first config also removes the second one of its type.
    expect(log.serviceConfigs('disassociate', 'i1', [['s1', 'c1']]).ok).toBe(true)
    expect(state.table('serviceConfig').rows.size).toBe(0)
    expect(log.serviceConfigs('disassociate', 'i1', []).ok).toBe(true)
  })

  test('are all refused if one of several in a request is invalid', () => {
    const { log, state } = withConfigs()
    const associate = (pairs: [string, string][]): unknown =>
      log.serviceConfigs('associate', 'i1', [['s1', 'c1'], ...pairs])
    expect(associate([['s1', 'nope']])).toMatchObject(refusedWith('NOT_FOUND'))
    expect(associate([['nope', 'c1']])).toMatchObject(
      refusedWith('COULD_NOT_VALIDATE', 'serviceConfigs'),
    )
    expect(associate([['s1', 'r1']])).toMatchObject({ fault: { field: 'serviceConfigs' } })
    expect(log.serviceConfigs('associate', 'nope', [])).toMatchObject(refusedWith('NOT_FOUND'))
    expect(state.table('serviceConfig').rows.size).toBe(0)
  })

  test('prevent the deletion of their config, and are removed with their service and identity', () => {
    const { log, state } = withConfigs()
    log.serviceConfigs('associate', 'i1', [
      ['s1', 'c1'],
      ['s2', 'c1'],
    ])
    expect(log.delete('config', 'c1')).toMatchObject(
      refusedWith('CAN_NOT_DELETE_REFERENCED_ENTITY', 'configId'),
    )
    log.delete('service', 's1')
    expect(state.table('serviceConfig').rows.size).toBe(1)
    log.delete('identity', 'i1')
    expect(state.table('serviceConfig').rows.size).toBe(0)
    expect(log.delete('config', 'c1').ok).toBe(true)
  })

  test('may have a type with the name of a prototype member such as __proto__', () => {
    const { log, state } = withConfigs()
    log.patch('configType', 'proxy.v1', { name: '__proto__' })
    log.serviceConfigs('associate', 'i1', [['s1', 'c2']])
    const config = shown(state, 's1', 'i1', 'all')
    expect(JSON.stringify(config)).toContain('"__proto__":{"port":2}')
  })
})

test('permissions that do not exist are refused when the log entry is applied, even if a proposer accepted them', () => {
  const { log } = formedState()
  const permissions = ['service.read', 'everything']
  expect(
    log.raw(CommandKind.ENTITY_CREATE, 'identity', 'i1', {
      name: 'n',
      isAdmin: false,
      permissions,
    }),
  ).toMatchObject(refusedWith('COULD_NOT_VALIDATE', 'permissions'))
})

test('deleting an identity removes the identity from the roles of policies', () => {
  const { log, state } = formedState()
  log.create('identity', 'i1', identity('ann'))
  log.create('servicePolicy', 'p', policy('p', ['@admin', '@i1'], []))
  log.command(
    CommandKind.ENTITY_DELETE,
    toBinary(EntityDeleteSchema, create(EntityDeleteSchema, { entity: 'identity', id: 'i1' })),
  )
  expect(state.get('servicePolicy', 'p')?.['identityRoles']).toEqual(['@admin'])
})

describe('deleting a posture check that is selected by a service policy', () => {
  const check = { name: 'os', typeId: 'MFA', roleAttributes: ['devices'] }

  function withPolicy(log: LogWriter, role: string): void {
    log.create('postureCheck', 'c1', check)
    log.create(
      'servicePolicy',
      'p1',
      policy('p1', ['#all'], ['#all'], { postureCheckRoles: [role] }),
    )
  }

  test.each(['@c1', '#devices', '#all'])(
    'is allowed at feature level 1 (role in the policy: %s)',
    (role) => {
      const { log } = formedState()
      withPolicy(log, role)
      expect(log.delete('postureCheck', 'c1')).toEqual({ ok: true, id: 'c1' })
    },
  )

  test.each(['@c1', '#devices', '#all'])(
    'is refused from feature level 2 on (role in the policy: %s)',
    (role) => {
      const { log } = restorableState()
      withPolicy(log, role)
      const refused = refusedWith('CAN_NOT_DELETE_REFERENCED_ENTITY', 'postureCheckRoles')
      expect(log.delete('postureCheck', 'c1')).toMatchObject(refused)
      log.patch('servicePolicy', 'p1', { postureCheckRoles: [] })
      expect(log.delete('postureCheck', 'c1')).toEqual({ ok: true, id: 'c1' })
    },
  )
})

describe('an endless lock of an administrator’s password', () => {
  function attempt(log: LogWriter): boolean {
    const message = create(PasswordAttemptSchema, { authenticatorId: 'admin-updb' })
    const payload = toBinary(PasswordAttemptSchema, message)
    return log.command(CommandKind.PASSWORD_ATTEMPT, payload).outcome?.ok === true
  }

  function attemptsAfterALock({ log }: ReturnType<typeof formedState>): readonly boolean[] {
    log.patch('authPolicy', 'default', {
      primary: { updb: { maxAttempts: 1, lockoutDurationMinutes: 0 } },
    })
    const first = attempt(log)
    log.timeMs += lockoutLimits.adminLockMsMax - 1
    const during = attempt(log)
    log.timeMs += 1
    return [first, during, attempt(log)]
  }

  test('is kept at feature level 1, because members of an older release would keep it', () => {
    expect(attemptsAfterALock(formedState())).toEqual([true, false, false])
  })

  test('ends after 15 minutes from feature level 2 on', () => {
    expect(attemptsAfterALock(restorableState())).toEqual([true, false, true])
  })
})
