import { type ChildProcess, spawn } from 'node:child_process'

import { flotilla } from './cluster.ts'

/** A router of a test that starts and stops several times; at most one process at a time. */
export class RouterProcess {
  readonly #env: NodeJS.ProcessEnv
  #child: ChildProcess | null = null
  /** Output since the last start. */
  output = ''

  constructor(env: NodeJS.ProcessEnv) {
    this.#env = env
  }

  /** @param more options of `flotilla router run`. */
  start(config: string, ...more: readonly string[]): void {
    const child = spawn(flotilla, ['router', 'run', config, ...more], { env: this.#env })
    this.output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => (this.output += chunk.toString('utf8')))
    }
    this.#child = child
  }

  /** Ends the process with SIGTERM, and waits until it has ended. */
  async stop(): Promise<void> {
    const child = this.#child
    if (child === null || child.exitCode !== null) return
    const ended = new Promise<void>((done) => child.once('exit', () => done()))
    child.kill('SIGTERM')
    await ended
  }
}
