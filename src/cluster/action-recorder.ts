import { create, toBinary } from '@bufbuild/protobuf'

import { ClusterActionSchema, CommandKind } from '../../proto/gen/command_pb.ts'
import { Problem } from '../lib/problems.ts'
import type { ActionRecorder, ClusterAction } from '../ports/membership.ts'
import { ITSELF } from '../ports/proposer.ts'
import type { Actor, Proposer } from '../ports/proposer.ts'
import type { Log } from './log.ts'
import { problemOf } from './secret-rotation.ts'

/** Puts what is done to the cluster beside its records into the log, with its actor. */
export class ActionLog implements ActionRecorder {
  readonly #proposer: Proposer
  readonly #log: Pick<Log, 'warn'>

  constructor(proposer: Proposer, log: Pick<Log, 'warn'>) {
    this.#proposer = proposer
    this.#log = log
  }

  async record({ action, target, outcome, reason = '' }: ClusterAction, by: Actor): Promise<void> {
    const message = create(ClusterActionSchema, { action, target: target ?? '', outcome, reason })
    const payload = toBinary(ClusterActionSchema, message)
    const kind = CommandKind.CLUSTER_ACTION
    const applied = await this.#proposer.propose({ kind, payload, actor: by })
    if (!applied.outcome.ok) throw problemOf(applied.outcome)
  }

  async note(action: ClusterAction, by: Actor): Promise<void> {
    // What has been done is told whether or not its actor may still ask for it.
    const { permission: _, ...asWell } = by
    try {
      await this.record(action, by === ITSELF ? by : asWell)
    } catch (error) {
      const code = error instanceof Problem ? error.code : 'UNHANDLED'
      const { target } = action
      this.#log.warn(
        { ...action, actor: by.identityId || by.name, code },
        `cannot write to the audit that ${action.action} ${target ?? ''} ended as ${action.outcome}: ${code}`,
      )
    }
  }
}

/**
 * Carries something out between two lines of the audit: that it is wanted, without which nothing is done, and what came
 * of it.
 */
export async function recorded<T>(
  recorder: ActionRecorder,
  wanted: Pick<ClusterAction, 'action' | 'target' | 'reason'>,
  by: Actor,
  run: () => Promise<T>,
): Promise<T> {
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
