import type { ControllerConfig } from '../config/controller/options.ts'

type Applier = (config: ControllerConfig, before: ControllerConfig) => void | Promise<void>

/**
 * The current configuration: the one read at the start, with the options that reloads have changed.
 */
export class RunningOptions {
  #config: ControllerConfig
  readonly #appliers: Applier[] = []

  constructor(config: ControllerConfig) {
    this.#config = config
  }

  get config(): ControllerConfig {
    return this.#config
  }

  /**
   * Calls `apply` with the configuration after each reload; for components that store option
   * values.
   */
  onReload(apply: Applier): void {
    this.#appliers.push(apply)
  }

  async replace(config: ControllerConfig): Promise<void> {
    const before = this.#config
    this.#config = config
    for (const apply of this.#appliers) await apply(config, before)
  }
}
