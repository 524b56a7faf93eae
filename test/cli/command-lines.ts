import type { Command } from 'commander'
import { vi } from 'vitest'

import { allCommands } from '../../src/cli/common-command-options.ts'
import { buildProgram } from '../../src/cli/program.ts'

/** The words of a verb as they are typed, `cluster status`. */
export function nameOf(command: Command): string {
  const { parent } = command
  if (parent === null || parent.parent === null) return command.name()
  return `${nameOf(parent)} ${command.name()}`
}

/** Those that are listed by help, by their names. */
export function shownVerbs(program: Command): (readonly [string, Command])[] {
  return allCommands(program)
    .filter(
      (one) =>
        one.commands.length === 0 && one.name() !== 'help' && one.name() !== 'complete-words',
    )
    .map((command) => [nameOf(command), command] as const)
}

/** Splits a line as a shell would, without the parts that it would not pass to the program. */
export function wordsOf(line: string): string[] {
  const [command = ''] = line.split(/ \d?[<>]+ |\) /)
  return (command.match(/'[^']*'|"(?:[^"\\]|\\.)*"|[^\s)]+/g) ?? [])
    .slice(1)
    .map((word) => word.replaceAll(/^['"]|['"]$/g, ''))
}

/**
 * The verb that a command line leads to; nothing of it is carried out.
 * @throws what the program would refuse it with.
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

/** The longest name of a verb that the words begin with. */
export function verbIn(
  verbs: readonly (readonly [string, Command])[],
  words: readonly string[],
): string {
  const found = verbs
    .map(([name]) => name)
    .filter((name) => `${words.join(' ')} `.startsWith(`${name} `))
  return found.sort((a, b) => b.length - a.length)[0] ?? words.join(' ')
}
