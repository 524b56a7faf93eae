import { Core, type CoreStart, type FullStatus } from '../../src/raft/core.ts'
import type { Effects } from '../../src/raft/effects.ts'
import type { Input } from '../../src/raft/input.ts'

/** Receives each input and result of every core of this process, in one order. */
export interface CoreObserver {
  onStart(core: Core, start: CoreStart): void
  /** Not called for a step that ends in an assertion. */
  onStep(core: Core, input: Input, before: FullStatus): void
  onEffects(core: Core, effects: Effects): void
}

/**
 * Observes from now on, until the returned function is called. The cores and their drivers do not
 * change.
 */
export function observeCores(observer: CoreObserver): () => void {
  const { restore } = Core
  const { step, takeEffects } = Core.prototype
  Core.restore = (start) => {
    const core = restore(start)
    observer.onStart(core, start)
    return core
  }
  Core.prototype.step = function (this: Core, input) {
    const before = this.fullStatus
    step.call(this, input)
    observer.onStep(this, input, before)
  }
  Core.prototype.takeEffects = function (this: Core) {
    const effects = takeEffects.call(this)
    if (effects !== null) observer.onEffects(this, effects)
    return effects
  }
  return () => {
    Core.restore = restore
    Core.prototype.step = step
    Core.prototype.takeEffects = takeEffects
  }
}
