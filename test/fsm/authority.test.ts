import { describe, expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { disclosesAdminSecret } from '../../src/fsm/apply/admin-secrets.ts'
import { identityOwnedKinds, actorRights, writeRefusal } from '../../src/fsm/apply/actor-rights.ts'
import { entities } from '../../src/entities/registry.ts'
import { rulesForKind } from '../../src/fsm/kind-rules.ts'
import { isGranted, type SessionPermission } from '../../src/lib/permissions.ts'
import { type Actor, createSystemActor } from '../../src/ports/actor.ts'
import { anySession } from '../support/commands.ts'
import { LogWriter, formedState, identity, service } from './support/log.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

const denial = { ok: false, code: 'UNAUTHORIZED' } as const

function actor(permission: SessionPermission, identityId = 'alice', sessionId = 'of-alice'): Actor {
  return anySession({ identityId, sessionId, permission })
}

/**
 * Why a command is refused that any session may propose if it has the permission; null if it is not
 * refused.
 */
function authority(state: ClusterState, by: Actor): string | null {
  return actorRights(state, by, CommandKind.ENTITY_PATCH)?.authority ?? null
}

/** The identity Alice with the given permissions, in a session. */
function withAlice(...permissions: readonly string[]) {
  const { state, log } = formedState()
  log.create('identity', 'alice', { ...identity('Alice'), permissions })
  log.logIn('of-alice', 'alice', '')
  return { state, log }
}

describe('a caller’s authority at the time when a log entry is applied', () => {
  test('is full for the system, and for a session that performs an operation that every session may perform', () => {
    const { state } = withAlice()
    expect(authority(state, createSystemActor({ name: 'controller:ctrl1' }))).toBe('full')
    expect(authority(state, actor('session'))).toBe('full')
  })

  test('ends if the session or the identity is deleted', () => {
    const { state, log } = withAlice('service')
    expect(authority(state, actor('service.create'))).toBe('limited')
    log.logOut('of-alice')
    expect(authority(state, actor('service.create'))).toBe(null)
    expect(authority(state, actor('session'))).toBe(null)
    expect(authority(state, actor('service.create', 'nobody'))).toBe(null)
  })

  test('cannot be based on a session of another identity', () => {
    const { state, log } = withAlice()
    log.logIn('of-admin')
    expect(authority(state, actor('admin', 'admin', 'of-admin'))).toBe('full')
    expect(authority(state, actor('admin', 'admin', 'of-alice'))).toBe(null)
    expect(authority(state, actor('session', 'alice', 'of-admin'))).toBe(null)
  })

  test('follows the current rights of the identity', () => {
    const { state, log } = withAlice('service.create')
    expect(authority(state, actor('service.create'))).toBe('limited')
    expect(authority(state, actor('service.delete'))).toBe(null)
    expect(authority(state, actor('admin'))).toBe(null)
    log.patch('identity', 'alice', { isAdmin: true })
    expect(authority(state, actor('admin'))).toBe('full')
  })

  test('is required: the log entry of a caller without it is refused, and changes nothing', () => {
    const { state, log } = withAlice()
    const payload = LogWriter.write('service', 'one', service('one'))
    const input = { actor: actor('service.create') }
    const { outcome } = log.command(CommandKind.ENTITY_CREATE, payload, input)
    expect(outcome).toMatchObject(denial)
    expect(state.get('service', 'one')).toBeUndefined()
  })
})

describe('a record that belongs to an administrator', () => {
  const limited = { authority: 'limited', held: ['enrollment'] } as const
  const place = { index: 1, logTimeMs: 1, sessionId: '', routerId: '' }
  const context = { ...place, ...limited, touched: [], rulesOf: rulesForKind }

  test('cannot be written by a caller with only a permission if the record is an enrollment, second factor or credential', () => {
    const { state } = withAlice('enrollment')
    for (const kind of ['enrollment', 'mfa', 'authenticator', 'serviceConfig'] as const) {
      const write = (identityId: string) =>
        writeRefusal(
          state,
          { kind, mode: 'create', before: undefined, fields: { identityId } },
          context,
        )
      expect(write('admin'), kind).toMatchObject(denial)
      expect(write('alice'), kind).toBe(null)
      const before = { id: 'x', createdAt: 1, updatedAt: 1, revision: 1, identityId: 'admin' }
      const gone = { kind, mode: 'delete', before, fields: {} } as const
      expect(writeRefusal(state, gone, context), kind).toMatchObject(denial)
      expect(writeRefusal(state, gone, { ...context, authority: 'full' }), kind).toBe(null)
    }
  })

  test('is a secret that only administrators may see, if the record is an enrollment', () => {
    const { state } = withAlice()
    const record = { id: 'x', createdAt: 1, updatedAt: 1, revision: 1, identityId: 'admin' }
    expect(disclosesAdminSecret(state, 'enrollment', record)).toBe(true)
    expect(disclosesAdminSecret(state, 'enrollment', { ...record, identityId: 'alice' })).toBe(
      false,
    )
  })
})

test('a permission for an action covers only that action, and a permission for a kind covers all grantable actions of that kind', () => {
  expect(isGranted(['service.read'], 'service.read', true)).toBe(true)
  expect(isGranted(['service.delete'], 'service.read', true)).toBe(false)
  expect(isGranted(['service'], 'service.delete', false)).toBe(true)
  expect(isGranted(['service'], 'service-policy.read', true)).toBe(false)
  expect(isGranted(['authenticator', 'authenticator.read'], 'authenticator.read', true)).toBe(false)
  expect(isGranted(['admin_readonly'], 'authenticator.read', true)).toBe(true)
  expect(isGranted(['admin_readonly'], 'ops.read', false)).toBe(false)
  expect(isGranted(['ops', 'ops.create'], 'ops.create', false)).toBe(false)
  expect(isGranted(['controllers'], 'controllers.delete', false)).toBe(false)
})

test('each kind of record with an identity ID declares its owner, or this test lists the kind with a reason', () => {
  // With a permission, a caller can only end sessions; the API writes neither certificates of
  // sessions nor counts of attempts.
  const notOwned = ['apiSession', 'mfaAttempts', 'session', 'sessionCertificate']
  const belonging = entities.filter((one) => one.fieldNames.includes('identityId'))
  const names = belonging.map(({ name }) => name)
  expect(names.filter((name) => !identityOwnedKinds.has(name)).toSorted()).toEqual(notOwned)
  expect([...identityOwnedKinds].filter((name) => !names.some((own) => own === name))).toEqual([])
})
