import { createEnrollmentActor } from '../../src/ports/actor.ts'
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { CommandKind, CommandKindSchema, CommandSchema } from '../../proto/gen/command_pb.ts'
import { applyLogEntry } from '../../src/fsm/apply-log-entry.ts'
import type { Entry } from '../../src/raft/types.ts'
import { formedState } from './support/log.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

type CommandInit = MessageInitShape<typeof CommandSchema>

/**
 * Every command kind for which the state machine has a handler: the type of the table requires one
 * for each kind.
 */
const kinds = CommandKindSchema.values
  .map(({ name, number }) => [name.replace('COMMAND_KIND_', ''), number as CommandKind] as const)
  .filter(([, kind]) => kind !== CommandKind.UNSPECIFIED)

const admin = { identityId: 'admin', sessionId: 'of-admin', address: '10.0.0.1' }

function session(given: Partial<Record<keyof typeof admin | 'permission', string>>): CommandInit {
  return { actor: { case: 'session', value: { ...admin, permission: 'admin', ...given } } }
}

/**
 * Actors without any permission. The administrator has a session, so that only the missing
 * permission can cause a refusal.
 */
const powerless: readonly (readonly [string, CommandInit, RegExp])[] = [
  ['no actor', {}, /names no actor/],
  ['no permission', session({ permission: '' }), /has no permission/],
  ['an unknown permission', session({ permission: 'full' }), /permission .* is unknown/],
  [
    'a permission for an unknown kind of record',
    session({ permission: 'nothing.create' }),
    /is unknown/,
  ],
  ['no API session', session({ sessionId: '' }), /names no API session/],
  ['no identity', session({ identityId: '' }), /names no identity/],
  ['a system actor without a name', { actor: { case: 'system', value: {} } }, /has no name/],
  [
    'an empty enrollment actor',
    { actor: { case: 'enrollment', value: {} } },
    /exactly one of token, CA, router and signer/,
  ],
]

/**
 * Actors as earlier releases encoded them (field 3), before the actor became a union: the
 * administrator with and without a permission, and a controller.
 */
const oldForms = [
  Buffer.concat([text(1, admin.identityId), text(2, admin.sessionId), text(4, 'admin')]),
  Buffer.concat([text(1, admin.identityId), text(2, admin.sessionId)]),
  text(5, 'controller:ctrl1'),
]

/** A string or bytes as field `number` of an encoded message. */
function text(number: number, value: string | Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from([(number << 3) | 2, value.length]), Buffer.from(value)])
}

/** A new cluster whose administrator is logged in, and a function that applies one command. */
function formed() {
  const { state, log } = formedState()
  log.logIn(admin.sessionId)
  return {
    applied: (data: Uint8Array) => log.append('command', data),
    recordsOf: () => state.entitiesDigest(),
  }
}

function dataOf(kind: CommandKind, init: CommandInit): Uint8Array {
  return toBinary(CommandSchema, create(CommandSchema, { level: 1, ...init, kind }))
}

describe.each(kinds)('a command of kind %s', (_name, kind) => {
  const { applied, recordsOf } = formed()

  test.each(powerless)('is refused with %s', (_what, init, reason) => {
    const before = recordsOf()
    expect(applied(dataOf(kind, init)).outcome).toEqual({
      ok: false,
      code: 'UNAUTHORIZED',
      fault: null,
      detail: expect.stringMatching(reason) as string,
    })
    expect(recordsOf()).toBe(before)
  })

  test('is refused if its actor has the format of older log entries', () => {
    const before = recordsOf()
    for (const old of oldForms) {
      const data = Buffer.concat([dataOf(kind, {}), text(3, old)])
      expect(fromBinary(CommandSchema, data).actor.case).toBeUndefined()
      expect(applied(data).outcome).toMatchObject({ ok: false, code: 'UNAUTHORIZED' })
    }
    expect(recordsOf()).toBe(before)
  })

  test('is refused from an enrolling client, except for its own enrollment', () => {
    for (const [shown, opens] of [
      ['enrollmentId', CommandKind.ENROLL],
      ['caId', CommandKind.CA_ENROLL],
      ['routerId', CommandKind.ROUTER_EXTEND],
    ] as const) {
      if (kind === opens) continue
      const actor = createEnrollmentActor(
        { [shown]: 'one' },
        { method: 'ott', address: '10.0.0.1' },
      )
      expect(applied(dataOf(kind, { actor })).outcome).toMatchObject({
        ok: false,
        code: 'UNAUTHORIZED',
      })
    }
  })
})

test('a command without an actor cannot form a cluster', () => {
  const state = new ClusterState()
  const data = dataOf(CommandKind.FORM, { payload: new Uint8Array([10, 1, 99]) })
  const entry: Entry = { index: 1, term: 1, timeMs: 1, type: 'command', data }
  expect(applyLogEntry(state, entry).outcome).toMatchObject({ ok: false, code: 'UNAUTHORIZED' })
  expect(state.clusterId).toBe('')
})

test('the audit record of a refused command contains the actor that the command claims, if there is one', () => {
  const { applied } = formed()
  expect(applied(dataOf(CommandKind.ENTITY_CREATE, {})).audit).toMatchObject({
    actor: '',
    session: '',
    address: '',
    outcome: 'UNAUTHORIZED',
  })
  const unnamed = dataOf(CommandKind.ENTITY_CREATE, session({ permission: '' }))
  expect(applied(unnamed).audit).toMatchObject({
    actor: 'admin',
    session: 'of-admin',
    address: '10.0.0.1',
    outcome: 'UNAUTHORIZED',
  })
})
