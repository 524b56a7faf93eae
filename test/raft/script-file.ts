import { readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { assert } from '../../src/lib/assert.ts'
import { ScriptRunner } from './script-runner.ts'

// A script consists of comments that state its rule, then scenes: commands, `----`, their results.

/** Fields of the first lines of a script. */
export interface ScriptHead {
  /** Section of the Raft paper, of the dissertation, or of `docs/internals/divergence.md`. */
  readonly section: string
  readonly rule: string
  /** The failure that the rule prevents. */
  readonly without: string
}

/** @throws when one of the three fields is missing. */
export function headOf(script: string): ScriptHead {
  const lines = script.split('\n')
  const end = lines.findIndex((line) => !line.startsWith('# '))
  const [section = '', ...told] = lines.slice(0, end).map((line) => line.slice(2))
  assert(/^(Raft paper|Dissertation|Flotilla:) /.test(section), 'a script names its section first')
  const [rule, without, ...more] = told.join(' ').split(' Without it: ')
  const isWhole = rule !== '' && without !== undefined && more.length === 0
  assert(isWhole, 'a script tells its rule, and what breaks without it')
  return { section, rule: rule ?? '', without: without ?? '' }
}

/** Runs the script. @returns the script with its current results. */
export function play(script: string): string {
  const runner = new ScriptRunner()
  const scenes = script.trimEnd().split(/\n\n+/)
  const played = scenes.map((scene) => {
    const [part = ''] = scene.split('\n----')
    const lines = part.split('\n')
    const commands = lines.map((line) => line.trim()).filter((line) => !/^(#|$)/.test(line))
    if (commands.length === 0) return scene
    return `${part}\n----\n${runner.run(commands)}`
  })
  return `${played.join('\n\n')}\n`
}

/**
 * Compares a file with its expected content; with FLOTILLA_RECORD=1 it writes the file instead.
 * Change a recording only for a known reason.
 * @throws when they differ and it does not write.
 */
export function holdTo(
  path: string,
  expected: (recorded: string) => string,
  isRecording = process.env['FLOTILLA_RECORD'] === '1',
): void {
  const recorded = readFileSync(path, 'utf8')
  const now = expected(recorded)
  if (isRecording) {
    if (now !== recorded) writeFileSync(path, now)
    return
  }
  const [was, is] = [recorded.split('\n'), now.split('\n')]
  const at = is.findIndex((line, index) => line !== was[index])
  if (now === recorded) return
  const line = at < 0 ? is.length : at
  throw new Error(
    `${basename(path)}, line ${line + 1}\nrecorded: ${was[line] ?? 'nothing'}\nnow:      ${is[line] ?? 'nothing'}`,
  )
}
