import { CommandFailure, EXIT_FAILED } from '../../controller/command-failure.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import { printLine } from './output.ts'

interface Check {
  readonly check: string
  readonly result: 'ok' | 'warning' | 'failed'
  readonly detail: string
}

const NAME_COLUMNS = 14

/**
 * Collects the results of checks, and prints a line for each result. A silent list prints nothing:
 * the caller prints all results as JSON.
 */
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
   * Adds a problem that does not end the list of checks.
   * @param detail a sentence with the remedy.
   */
  warn(check: string, detail: string): void {
    this.#print({ check, result: 'warning', detail })
  }

  /**
   * Adds a failed check and ends the list.
   * @param sentence the fault and its remedy.
   * @throws {CommandFailure} exit 1 with the sentence, always.
   */
  fail(check: string, sentence: string, cause?: unknown): never {
    this.#print({ check, result: 'failed', detail: sentence })
    throw new CommandFailure(EXIT_FAILED, sentence, cause)
  }

  /**
   * Adds a failed check and does not end the list. At the end, the caller must report the sentences
   * of all failed checks, which are in `faults`.
   */
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
    // The line of a failed check omits the detail, because the program prints the sentence at its
    // end.
    const detail =
      check.detail === '' || check.result === 'failed' ? '' : `: ${printableLine(check.detail)}`
    printLine(`${`${check.check} `.padEnd(NAME_COLUMNS, '.')} ${check.result}${detail}`)
  }
}
