import { create, toBinary } from '@bufbuild/protobuf'
import { CommandSchema } from '../../proto/gen/command_pb.ts'
import { type Actor, type SessionActor, createSystemActor } from '../../src/ports/actor.ts'

/** An actor for tests of other subjects: it may write everything. */
export const anySystem: Actor = createSystemActor({ name: 'test' })

/** A session for code that checks only the form of an actor. */
export function anySession(given: Partial<SessionActor> = {}): Actor {
  const who = { identityId: 'admin', sessionId: 'session', address: '127.0.0.1' }
  const shown = { signerId: '', signerRevision: '0' }
  return { case: 'session', value: { ...who, ...shown, permission: 'session', ...given } }
}

/** Log form of a command that another controller has proposed. */
export function commandData(kind: number, payload: Uint8Array, actor = anySystem): Uint8Array {
  return toBinary(CommandSchema, create(CommandSchema, { kind, level: 1, payload, actor }))
}
