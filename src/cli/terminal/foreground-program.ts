import type { Logger } from 'pino'

import { EXIT_FAILED } from '../../controller/command-failure.ts'
import type { Random } from '../../lib/random.ts'
import { LineWriter, openLineOutput } from './line-writer.ts'
import { createStdoutSink, createJsonLogger } from './log-lines.ts'

/** Random numbers of `Math.random`; tests pass reproducible numbers instead. */
export const systemRandom: Random = {
  next: () => Math.random(),
  integer: (min, max) => min + Math.floor(Math.random() * (max - min + 1)),
}

/**
 * The log of a program that runs in the foreground: readable lines if standard output is a
 * terminal, otherwise JSON lines.
 */
export function createProgramLog(level: string): Logger {
  const writer = new LineWriter(openLineOutput())
  process.on('exit', () => writer.flushSync())
  return createJsonLogger(createStdoutSink(writer), { base: {}, level })
}

/**
 * Installs a handler for SIGUSR2, which switches the log level to `debug` and back to the
 * configured level.
 */
export function toggleDebugLogOnSignal(log: Logger, configured: string): void {
  process.on('SIGUSR2', () => {
    const [from, level] = [log.level, log.level === configured ? 'debug' : configured]
    log.warn({ from, level }, `log level changed from ${from} to ${level} by SIGUSR2`)
    log.level = level
  })
}

/**
 * Resolves at the first SIGTERM or SIGINT. A second signal of the same kind ends the process
 * immediately.
 */
export function waitForStopSignal(log: Logger, program: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => {
      log.info({ signal }, `${program} stopping`)
      process.once(signal, () => process.exit(EXIT_FAILED))
      resolve()
    })
  }
  return promise
}

/**
 * Waits until the program has stopped; exits the process when this takes longer than the timeout.
 */
export async function exitUnlessStopped(timeoutMs: number, stopped: Promise<void>): Promise<void> {
  const timer = setTimeout(() => process.exit(EXIT_FAILED), timeoutMs)
  await stopped
  clearTimeout(timer)
}
