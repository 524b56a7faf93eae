import { errorMessage } from '../../lib/error-code.ts'

/** Faults and warnings of the checks before a start. */
export class Report {
  readonly faults: string[] = []
  readonly warnings: string[] = []

  /** Runs a step; an error becomes a fault that starts with `subject`. */
  attempt<T>(subject: string, remedy: string, step: () => T): T | null {
    try {
      return step()
    } catch (error) {
      this.faults.push(`${subject}${errorMessage(error)}; ${remedy}`)
      return null
    }
  }
}

/** @param consequence effect of the error on the running controller. */
export function warnOnError(
  report: Report,
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
