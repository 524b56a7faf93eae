import { errorMessage } from '../../lib/error-code.ts'

/** Faults and warnings that the checks before a start have found. */
export class StartCheckReport {
  readonly faults: string[] = []
  readonly warnings: string[] = []

  /** Runs a step. Records an error as a fault whose text starts with `subject`. */
  attempt<T>(subject: string, remedy: string, step: () => T): T | null {
    try {
      return step()
    } catch (error) {
      this.faults.push(`${subject}${errorMessage(error)}; ${remedy}`)
      return null
    }
  }
}

/**
 * Runs a step, and reports its error as a warning.
 * @param consequence how the error affects the running controller.
 */
export function warnOnError(
  report: StartCheckReport,
  subject: string,
  consequence: string,
  step: () => void,
): void {
  try {
    step()
  } catch (error) {
    report.warnings.push(`${subject}${errorMessage(error)}; ${consequence} until it is corrected`)
  }
}
