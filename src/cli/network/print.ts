import type { Json } from '../../lib/text/canonical-json.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import { printJson, printLine } from '../terminal/output.ts'
import type { FieldChange, Step } from './plan.ts'

const VALUE_CHARACTERS_MAX = 100

const signs = { create: '+', adopt: '~', update: '~', delete: '-' } as const
const done = { create: 'created', adopt: 'updated', update: 'updated', delete: 'deleted' } as const

/** A difference: one line for each step, and the fields of changed objects. */
export function differenceText(steps: readonly Step[]): string {
  return steps.map(stepText).join('\n')
}

function stepText(step: Step): string {
  const line = `${signs[step.verb]} ${labelOf(step)}`
  if (step.verb === 'adopt') return `${line} (created with its edge router)`
  if (step.verb !== 'update') return line
  return [line, ...step.changes.map((change) => `    ${changeText(change)}`)].join('\n')
}

function changeText({ field, from, to }: FieldChange): string {
  return printableLine(`${field}: ${valueText(from)} -> ${valueText(to)}`)
}

function valueText(value: Json): string {
  if (value === null) return 'unset'
  const text = typeof value === 'string' ? JSON.stringify(value) : JSON.stringify(value)
  return text.length <= VALUE_CHARACTERS_MAX ? text : `${text.slice(0, VALUE_CHARACTERS_MAX - 1)}…`
}

function labelOf(step: Step): string {
  return printableLine(step.verb === 'delete' ? step.live.label : step.wanted.label)
}

/** `2 created, 1 updated, 0 deleted`. */
export function countText(steps: readonly Step[]): string {
  const count = (word: string): number => steps.filter(({ verb }) => done[verb] === word).length
  return ['created', 'updated', 'deleted'].map((word) => `${count(word)} ${word}`).join(', ')
}

export function printDone(step: Step): void {
  printLine(`${done[step.verb]} ${labelOf(step)}`)
}

/** @param isDone false for a dry run. */
export function printSteps(steps: readonly Step[], isDone: boolean, access?: unknown): void {
  printJson({
    isDone,
    ...(access === undefined ? {} : { access }),
    steps: steps.map((step) => ({
      verb: step.verb === 'adopt' ? 'update' : step.verb,
      object: labelOf(step),
      ...(step.verb === 'update' ? { changes: step.changes } : {}),
    })),
  })
}
