import { Core, type CoreStart, type FullStatus } from '../../src/raft/core.ts'
import type { Effects } from '../../src/raft/effects.ts'
import type { Input } from '../../src/raft/input.ts'

/** Told of all that every core of this process is asked and answers, in the one order in which it happens. */
export interface CoreObserver {
  onStart(core: Core, start: CoreStart): void
  /** Not called for a step that ends in an assertion. */
  onStep(core: Core, input: Input, before: FullStatus): void
  onEffects(core: Core, effects: Effects): void
}

/** From here on, until what is returned is called. Nothing of the cores or their drivers is changed by being watched. */
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
