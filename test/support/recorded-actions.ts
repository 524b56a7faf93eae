import type { ActionRecorder, ClusterAction } from '../../src/ports/membership.ts'
import { type Actor, actorName, createSystemActor } from '../../src/ports/actor.ts'

/** Keeps the actions that would have been written to the log. */
export class RecordedActions implements ActionRecorder {
  readonly all: (ClusterAction & { readonly by: string })[] = []
  /** If set, thrown instead of recording an action. */
  refusal: Error | null = null

  record(action: ClusterAction, by: Actor): Promise<void> {
    if (this.refusal !== null) return Promise.reject(this.refusal)
    this.all.push({ ...action, by: actorName(by) })
    return Promise.resolve()
  }

  async note(action: ClusterAction, by: Actor): Promise<void> {
    await this.record(action, by).catch(() => undefined)
  }
}

/** A caller for tests that do not depend on the caller. */
export const anOperator = createSystemActor({ name: 'uid:1000 (op)' })
