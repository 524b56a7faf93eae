import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Delays ^C and similar signals until a point where the command can undo its work. */
export interface Interrupts {
  /** @throws {CommandFailure} if a signal has arrived. */
  check(): void
  /** Restores the default behavior: signals end the program at once. */
  end(): void
}

/**
 * @param kept completes the message of the interrupted command, such as `nothing was changed`.
 */
export function watchInterrupts(kept: string): Interrupts {
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
