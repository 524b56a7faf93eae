import { CommandFailure, EXIT_FAILED } from '../../controller/failure.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import { printLine } from './output.ts'

interface Check {
  readonly check: string
  readonly result: 'ok' | 'warning' | 'failed'
  readonly detail: string
}

const NAME_COLUMNS = 14

/** Reports steps as they complete: a line each for people, or collected in one JSON document. */
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
   * Reports a problem that does not end the list.
   * @param detail a sentence with its remedy.
   */
  warn(check: string, detail: string): void {
    this.#print({ check, result: 'warning', detail })
  }

  /**
   * Ends the list with a failed check.
   * @param sentence the fault and its remedy.
   * @throws {CommandFailure} exit 1 with the sentence, always.
   */
  fail(check: string, sentence: string, cause?: unknown): never {
    this.#print({ check, result: 'failed', detail: sentence })
    throw new CommandFailure(EXIT_FAILED, sentence, cause)
  }

  /**
   * Records a failure without ending the list: its sentence is printed at the end with the others.
   */
  failed(check: string, sentence: string): void {
    this.#print({ check, result: 'failed', detail: sentence })
  }

  /** The sentences of all failed checks. */
  get faults(): string[] {
    return this.checks.flatMap(({ result, detail }) => (result === 'failed' ? [detail] : []))
  }

  #print(check: Check): void {
    this.checks.push(check)
    if (this.#isSilent) return
    // The last line of the program describes the failed check, so this line does not.
    const detail =
      check.detail === '' || check.result === 'failed' ? '' : `: ${printableLine(check.detail)}`
    printLine(`${`${check.check} `.padEnd(NAME_COLUMNS, '.')} ${check.result}${detail}`)
  }
}
