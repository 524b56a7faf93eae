import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import { printLine } from './output.ts'

interface Check {
  readonly check: string
  readonly result: 'ok' | 'warning' | 'failed'
  readonly detail: string
}

const NAME_COLUMNS = 14

/** Reports steps as they complete: one line for each step, or all steps in one JSON document. */
export class CheckList {
  readonly checks: Check[] = []
  readonly #isSilent: boolean

  constructor(isSilent: boolean) {
    this.#isSilent = isSilent
  }

  ok(check: string, detail = ''): void {
    this.#print({ check, result: 'ok', detail })
  }

  /**
   * Reports a problem and continues with the next check.
   * @param detail a sentence with the remedy.
   */
  warn(check: string, detail: string): void {
    this.#print({ check, result: 'warning', detail })
  }

  /**
   * Reports a failed check and ends the list.
   * @param sentence the fault and its remedy.
   * @throws {CommandFailure} exit 1 with the sentence, always.
   */
  fail(check: string, sentence: string, cause?: unknown): never {
    this.#print({ check, result: 'failed', detail: sentence })
    throw new CommandFailure(EXIT_FAILED, sentence, cause)
  }

  /** Records a failed check and continues; its sentence is printed at the end with the others. */
  failed(check: string, sentence: string): void {
    this.#print({ check, result: 'failed', detail: sentence })
  }

  /** The error sentences of all failed checks. */
  get faults(): string[] {
    return this.checks.flatMap(({ result, detail }) => (result === 'failed' ? [detail] : []))
  }

  #print(check: Check): void {
    this.checks.push(check)
    if (this.#isSilent) return
    // The detail is omitted here, because the last line that the program prints describes the
    // failed check.
    const detail =
      check.detail === '' || check.result === 'failed' ? '' : `: ${printableLine(check.detail)}`
    printLine(`${`${check.check} `.padEnd(NAME_COLUMNS, '.')} ${check.result}${detail}`)
  }
}
