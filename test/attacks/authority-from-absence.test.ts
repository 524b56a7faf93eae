import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'
import { CommandKind, CommandSchema } from '../../proto/gen/command_pb.ts'
import { LocalProposals } from '../../src/cluster/replication/local-proposals.ts'
import type { Actor } from '../../src/ports/actor.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { ManualClock } from '../api/support/manual-time.ts'
import { LogWriter } from '../fsm/support/log.ts'

// The attack: a write with an incomplete actor reaches the log, or the code that proposes it:
// without an actor, without a permission, or with the session of another identity. An omitted field
// must never grant a right.

const { controller } = await controllerForFile()
const rootSession = sessionIdOf('admin-id')
const aliceSession = sessionIdOf('alice-id')

function sessionIdOf(identityId: string): string {
  const [, sessionId = ''] = controller.openSession(identityId).split('.')
  return sessionId
}

type ActorInit = NonNullable<MessageInitShape<typeof CommandSchema>['actor']>

function session(identityId: string, sessionId: string, permission: string): ActorInit {
  return { case: 'session', value: { identityId, sessionId, address: '10.0.0.1', permission } }
}

const incomplete: readonly (readonly [string, ActorInit])[] = [
  ['no actor', { case: undefined }],
  ['no permission', session('admin-id', rootSession, '')],
  ['a permission that no operation requires', session('admin-id', rootSession, 'everything')],
  ['no API session', session('admin-id', '', 'admin')],
  ['a system actor without a name', { case: 'system', value: {} }],
]

/** Makes the identity Alice an administrator. */
const payload = LogWriter.write('identity', 'alice-id', { isAdmin: true })
const kind = CommandKind.ENTITY_PATCH

test.each([
  ...incomplete,
  ['the API session of another identity', session('admin-id', aliceSession, 'admin')] as const,
])('a log entry with %s does not make an identity an administrator', (_what, actor) => {
  const command = create(CommandSchema, { kind, level: 1, payload, actor })
  const { outcome } = controller.cluster.apply(toBinary(CommandSchema, command))
  expect(outcome).toMatchObject({ ok: false, code: 'UNAUTHORIZED' })
  expect(controller.state.get('identity', 'alice-id')?.['isAdmin']).toBe(false)
})

test.each(incomplete.slice(0, -1))(
  'a controller refuses a write with %s before it proposes the write',
  async (_what, actor) => {
    const sent: Uint8Array[] = []
    const room = { outstandingMax: 9, outstandingSpanMax: 9, outstandingBytesMax: 1 << 20 }
    const desk = new LocalProposals(
      { storeId: new Uint8Array(16), boot: 1, proposeTimeoutMs: 1000, ...room },
      {
        selfId: 'ctrl1',
        clock: new ManualClock(),
        send: (proposals) => sent.push(proposals),
        hasLeader: () => true,
        featureLevel: () => 1,
      },
    )
    const proposed = desk.propose({ kind, payload, actor: actor as Actor })
    setImmediate(() => desk.close())
    await expect(proposed).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
    expect(sent).toEqual([])
  },
)
