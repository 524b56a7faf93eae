import { sentenceOf } from '../failure.ts'

export class Report {
  readonly faults: string[] = []
  readonly warnings: string[] = []

  /** Runs a step; what it throws becomes a fault that begins with `subject`. */
  attempt<T>(subject: string, remedy: string, step: () => T): T | null {
    try {
      return step()
    } catch (error) {
      this.faults.push(`${subject}${sentenceOf(error)}; ${remedy}`)
      return null
    }
  }
}

export function attempt(report: Report, subject: string, step: () => void): void {
  try {
    step()
  } catch (error) {
    report.warnings.push(
      `${subject}${sentenceOf(error)}; no backups are taken until it is corrected`,
    )
  }
}
