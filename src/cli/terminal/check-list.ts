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
 * Collects the results of checks. Prints a line for each when it is known; a silent list leaves it
 * to the caller to print all of them as JSON.
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
   * Prints a problem that does not end the list of checks.
   * @param detail a sentence with the remedy.
   */
  warn(check: string, detail: string): void {
    this.#print({ check, result: 'warning', detail })
  }

  /**
   * Prints a failed check and ends the list.
   * @param sentence the fault and its remedy.
   * @throws {CommandFailure} exit 1 with the sentence, always.
   */
  fail(check: string, sentence: string, cause?: unknown): never {
    this.#print({ check, result: 'failed', detail: sentence })
    throw new CommandFailure(EXIT_FAILED, sentence, cause)
  }

  /**
   * Prints a failed check and does not end the list; the caller prints the sentences of all failed
   * checks at the end.
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
