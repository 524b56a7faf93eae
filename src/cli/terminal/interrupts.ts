import { CommandFailure, EXIT_FAILED } from '../../controller/failure.ts'

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** ^C and similar signals end a command where it can still undo its work. */
export interface Interrupts {
  /** @throws {CommandFailure} after a signal. */
  check(): void
  /** Signals end the program at once again. */
  end(): void
}

/** @param kept says what the command leaves behind, such as `nothing was changed`. */
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
