import { Session } from 'node:inspector/promises'
import { rename, writeFile } from 'node:fs/promises'

import type { RouterConfig } from '../../config/router/table.ts'
import type { ProgramLogger } from '../../overlay/logger.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'

/** Profiles this process and writes the profile in the format of browser developer tools. */
export class Profiler {
  readonly #session = new Session()
  readonly #config: NonNullable<RouterConfig['profile']>
  readonly #log: ProgramLogger
  #stopTimer: (() => void) | null = null

  constructor(config: NonNullable<RouterConfig['profile']>, log: ProgramLogger) {
    this.#config = config
    this.#log = log
  }

  async start(): Promise<void> {
    const { cpu, memory } = this.#config
    this.#session.connect()
    if (cpu !== null) {
      await this.#session.post('Profiler.enable')
      await this.#session.post('Profiler.start')
    }
    if (memory !== null) {
      await this.#session.post('HeapProfiler.startSampling')
      this.#stopTimer = periodicScheduler.every(memory.intervalMs, () => void this.#writeMemory())
    }
  }

  async stop(): Promise<void> {
    const { cpu } = this.#config
    this.#stopTimer?.()
    if (cpu !== null) {
      const { profile } = await this.#session.post('Profiler.stop')
      await this.#write(cpu.path, profile)
    }
    await this.#writeMemory()
    this.#session.disconnect()
  }

  async #writeMemory(): Promise<void> {
    const { memory } = this.#config
    if (memory === null) return
    const { profile } = await this.#session.post('HeapProfiler.getSamplingProfile')
    await this.#write(memory.path, profile)
  }

  /** Writes the file atomically; if that fails, only the profile is lost. */
  async #write(path: string, profile: unknown): Promise<void> {
    try {
      const partial = `${path}.partial`
      await writeFile(partial, JSON.stringify(profile), { mode: 0o600 })
      await rename(partial, path)
    } catch (error) {
      this.#log.warn(
        { path, err: error },
        'cannot write the profile; name a file in a folder of this user',
      )
    }
  }
}
