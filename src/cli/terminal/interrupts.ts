import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Delays ^C and similar signals until the command calls `check`, so that the command can undo its
 * work before it ends.
 */
export interface Interrupts {
  /** @throws {CommandFailure} if a signal has arrived. */
  check(): void
  /** Restores the default behavior, in which a signal ends the program immediately. */
  end(): void
}

/**
 * @param kept the end of the message when a signal interrupts the command, such as `nothing was
 * changed`.
 */
export function delayInterrupts(kept: string): Interrupts {
  let isInterrupted = false
  const interrupt = (): void => {
    isInterrupted = true
  }
  for (const signal of ENDING_SIGNALS) process.on(signal, interrupt)
  return {
    check: () => {
      if (isInterrupted) throw new CommandFailure(EXIT_FAILED, `interrupted; ${kept}`)
    },
    end: () => {
      for (const signal of ENDING_SIGNALS) process.off(signal, interrupt)
    },
  }
}
