import { create, toBinary } from '@bufbuild/protobuf'

import { ClusterActionSchema, CommandKind } from '../../proto/gen/command_pb.ts'
import { Problem } from '../lib/problems.ts'
import { type Actor, actorName, createSystemActor } from '../ports/actor.ts'
import type { ActionRecorder, ClusterAction } from '../ports/membership.ts'
import type { Proposer } from '../ports/proposer.ts'
import type { Logger } from './logger.ts'
import { refusalProblem } from '../lib/refusal-problem.ts'

/**
 * Writes an audit entry to the log for each cluster action that changes no record, with its actor.
 */
export class ClusterActionRecorder implements ActionRecorder {
  readonly #proposer: Proposer
  readonly #log: Pick<Logger, 'warn'>

  constructor(proposer: Proposer, log: Pick<Logger, 'warn'>) {
    this.#proposer = proposer
    this.#log = log
  }

  async record({ action, target, outcome, reason = '' }: ClusterAction, by: Actor): Promise<void> {
    const message = create(ClusterActionSchema, { action, target: target ?? '', outcome, reason })
    const payload = toBinary(ClusterActionSchema, message)
    const kind = CommandKind.CLUSTER_ACTION
    const applied = await this.#proposer.propose({ kind, payload, actor: by })
    if (!applied.outcome.ok) throw refusalProblem(applied.outcome)
  }

  async note(action: ClusterAction, by: Actor): Promise<void> {
    try {
      await this.record(action, outlasting(by))
    } catch (error) {
      const code = error instanceof Problem ? error.code : 'UNHANDLED'
      const { target } = action
      this.#log.warn(
        { ...action, actor: actorName(by), code },
        `cannot write to the audit log (${code}): ${action.action} ${target ?? ''}, outcome ${action.outcome}`,
      )
    }
  }
}

/**
 * Actor to record for the outcome of an action. If the action ended the session of `by`, the state
 * machine would refuse that session as an actor. For a session, the result is therefore the system
 * as the actor, with the session's address, identity and id.
 */
function outlasting(by: Actor): Actor {
  if (by.case !== 'session') return by
  const { address, identityId, sessionId } = by.value
  return createSystemActor({ address, identityId, sessionId })
}

/**
 * Runs an action between two audit records: one for the request and one for the outcome. If the log
 * does not accept the first record, the action does not start.
 */
export async function runWithAudit<T>(
  recorder: ActionRecorder,
  wanted: Pick<ClusterAction, 'action' | 'target' | 'reason'>,
  by: Actor,
  run: () => Promise<T>,
): Promise<T> {
  // @guard unrecorded-change
  await recorder.record({ ...wanted, outcome: 'requested' }, by)
  try {
    const result = await run()
    await recorder.note({ ...wanted, outcome: 'done' }, by)
    return result
  } catch (error) {
    const outcome = error instanceof Problem ? error.code : 'UNHANDLED'
    await recorder.note({ ...wanted, outcome }, by)
    throw error
  }
}
