import { create, toBinary } from '@bufbuild/protobuf'
import { CommandSchema } from '../../proto/gen/command_pb.ts'
import { type Actor, type SessionActor, createSystemActor } from '../../src/ports/actor.ts'

/** An actor for tests that do not depend on the actor: it may write everything. */
export const anySystem: Actor = createSystemActor({ name: 'test' })

/** A session for code that checks only the form of an actor. */
export function anySession(given: Partial<SessionActor> = {}): Actor {
  const who = { identityId: 'admin', sessionId: 'session', address: '127.0.0.1' }
  const shown = { signerId: '', signerRevision: '0' }
  return { case: 'session', value: { ...who, ...shown, permission: 'session', ...given } }
}

/** The data of a log entry with this command, at feature level 1. */
export function commandData(kind: number, payload: Uint8Array, actor = anySystem): Uint8Array {
  return toBinary(CommandSchema, create(CommandSchema, { kind, level: 1, payload, actor }))
}
