import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'

import { buildProgram } from '../../src/cli/program.ts'
import { allCommands } from '../../src/cli/common-command-options.ts'
import { nameOf, ranBy, shownVerbs, verbIn, wordsOf } from './command-lines.ts'

// Goal: the help of every command has examples, and the program accepts each of them as a command
// line.

const LINE_MAX = 100

/** Commands without JSON output: they run a program, or write a document or a script. */
const withoutOutput = new Set([
  'quickstart',
  'demo',
  'controller run',
  'controller options',
  'router run',
  'router options',
  'tunnel run',
  'completion',
  'events',
])

/**
 * The help of a command, including the text after its options, which Commander's `helpInformation`
 * omits.
 */
function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({ writeOut: (part) => (text += part) })
  command.outputHelp()
  return text
}

/** Complete command lines of the program in the text after `Examples:`. */
function examplesIn(help: string): string[] {
  const [, after = ''] = help.split(/^Examples.*:$/m)
  const whole = after.replaceAll(/\\\n\s+/g, '').replaceAll(/\|\n\s+/g, '| ')
  return whole.split(/\n| \| /).flatMap((line) => /\bflotilla .*/.exec(line)?.[0] ?? [])
}

const program = buildProgram()
const verbs = shownVerbs(program)

describe('The help text of', () => {
  test.each(verbs)('%s has examples that the program accepts', async (name, command) => {
    const examples = examplesIn(helpOf(command))
    expect(examples).not.toEqual([])
    expect(examples.some((line) => line.startsWith(`flotilla ${name}`))).toBe(true)
    for (const example of examples) {
      const words = wordsOf(example)
      expect(await ranBy(words), example).toBe(verbIn(verbs, words))
    }
  })

  test.each(verbs)('%s fits into a terminal', (_name, command) => {
    for (const line of helpOf(command).split('\n'))
      expect(line.length, line).toBeLessThanOrEqual(121)
  })

  test('a command group lists each of its commands on one line', () => {
    const groups = [program, ...allCommands(program).filter((one) => one.commands.length > 0)]
    for (const group of groups) {
      const [, list = ''] = /^Commands:\n(.*?)\n\n/ms.exec(helpOf(group)) ?? []
      const lines = list.split('\n')
      expect(lines).toHaveLength(group.createHelp().visibleCommands(group).length)
      for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(LINE_MAX)
    }
  })

  test('the program lists commands before options, and the command `help` accepts a nested command', async () => {
    expect(helpOf(program)).toMatch(/Commands:[^]*Options:/)
    const help = buildProgram()
    let shown = ''
    const status = allCommands(help).find((one) => nameOf(one) === 'cluster status')
    status?.configureOutput({ writeOut: (part) => (shown += part) })
    await help.parseAsync(['node', 'flotilla', 'help', 'cluster', 'status'])
    expect(shown).toContain('Usage: flotilla cluster status')
  })

  test('a time option shows its default in the unit in which a user types it', () => {
    for (const [name, command] of verbs) {
      for (const { defaultValue, defaultValueDescription: shown, flags } of command.options) {
        if (!flags.includes('<time>') || defaultValue === undefined) continue
        expect(shown ?? String(defaultValue), `${name} ${flags}`).toMatch(/^\d+[smhd]$/)
      }
    }
  })
})

test.each(verbs.filter(([name]) => !withoutOutput.has(name)))(
  'the command %s has the output formats JSON and YAML',
  (name, command) => {
    const option = command.options.find(({ long }) => long === '--output')
    expect(option?.argChoices, name).toEqual(expect.arrayContaining(['json', 'yaml']))
    expect(command.options.some(({ long }) => long === '--json')).toBe(true)
  },
)
