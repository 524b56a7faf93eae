import { RaftCore, type RaftCoreStart, type FullCoreStatus } from '../../src/raft/core.ts'
import type { CoreEffects } from '../../src/raft/effects.ts'
import type { CoreInput } from '../../src/raft/input.ts'

/** Receives each input and result of every core of this process, in one order. */
export interface CoreObserver {
  onStart(core: RaftCore, start: RaftCoreStart): void
  /** Not called for a step that ends in an assertion. */
  onStep(core: RaftCore, input: CoreInput, before: FullCoreStatus): void
  onEffects(core: RaftCore, effects: CoreEffects): void
}

/**
 * Observes all cores from this call on, until the returned function is called. The cores and their
 * drivers do not change.
 */
export function observeCores(observer: CoreObserver): () => void {
  const { restore } = RaftCore
  const { step, takeEffects } = RaftCore.prototype
  RaftCore.restore = (start) => {
    const core = restore(start)
    observer.onStart(core, start)
    return core
  }
  RaftCore.prototype.step = function (this: RaftCore, input) {
    const before = this.fullStatus
    step.call(this, input)
    observer.onStep(this, input, before)
  }
  RaftCore.prototype.takeEffects = function (this: RaftCore) {
    const effects = takeEffects.call(this)
    if (effects !== null) observer.onEffects(this, effects)
    return effects
  }
  return () => {
    RaftCore.restore = restore
    RaftCore.prototype.step = step
    RaftCore.prototype.takeEffects = takeEffects
  }
}
