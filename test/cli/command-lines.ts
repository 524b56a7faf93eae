import type { Command } from 'commander'
import { vi } from 'vitest'

import { allCommands } from '../../src/cli/common-command-options.ts'
import { buildProgram } from '../../src/cli/program.ts'

/** The full name of a command, such as `cluster status`. */
export function nameOf(command: Command): string {
  const { parent } = command
  if (parent === null || parent.parent === null) return command.name()
  return `${nameOf(parent)} ${command.name()}`
}

/** Commands that the help lists, by name. */
export function shownVerbs(program: Command): (readonly [string, Command])[] {
  return allCommands(program)
    .filter(
      (one) =>
        one.commands.length === 0 && one.name() !== 'help' && one.name() !== 'complete-words',
    )
    .map((command) => [nameOf(command), command] as const)
}

/** Splits a line as a shell would, and omits what a shell would not pass to the program. */
export function wordsOf(line: string): string[] {
  const [command = ''] = line.split(/ \d?[<>]+ |\) /)
  return (command.match(/'[^']*'|"(?:[^"\\]|\\.)*"|[^\s)]+/g) ?? [])
    .slice(1)
    .map((word) => word.replaceAll(/^['"]|['"]$/g, ''))
}

/**
 * The command to which a command line leads, without running it.
 * @throws the error with which the program would refuse the command line.
 */
export async function ranBy(words: readonly string[]): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const parsed = buildProgram()
  for (const command of allCommands(parsed)) {
    command.configureOutput({ writeErr: () => undefined })
    if (command.commands.length === 0) command.action(() => resolve(nameOf(command)))
  }
  vi.stubEnv('FLOTILLA_CONFIG', '/etc/flotilla/config.yml')
  try {
    await parsed.parseAsync(['node', 'flotilla', ...words])
  } finally {
    vi.unstubAllEnvs()
  }
  return await promise
}

/** The longest name of a command with which the words begin. */
export function verbIn(
  verbs: readonly (readonly [string, Command])[],
  words: readonly string[],
): string {
  const found = verbs
    .map(([name]) => name)
    .filter((name) => `${words.join(' ')} `.startsWith(`${name} `))
  return found.sort((a, b) => b.length - a.length)[0] ?? words.join(' ')
}
