import type { Command } from 'commander'

import { allCommands } from '../../src/cli/common-command-options.ts'
import { commandFullName } from '../../src/cli/command-names.ts'
import { buildProgram } from '../../src/cli/program.ts'

/** Width of the help in characters, so that the result does not depend on the terminal. */
const WIDTH = 100

/**
 * The help texts of all commands, each with a heading; the heading of a group comes before those of
 * its commands.
 */
export function cliReference(): string {
  const program = buildProgram()
  const isShown = (command: Command): boolean =>
    !['help', 'complete-words'].includes(command.name())
  return allCommands(program)
    .filter(isShown)
    .map((command) => {
      const level = command.parent === program ? '##' : '###'
      return `${level} \`${commandFullName(command)}\`\n\n\`\`\`text\n${helpOf(command)}\n\`\`\`\n`
    })
    .join('\n')
}

/**
 * The help of a command including the text after its options, which Commander's `helpInformation`
 * omits.
 */
function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => WIDTH })
  command.configureHelp({ ...command.configureHelp(), helpWidth: WIDTH })
  command.outputHelp()
  return text.trimEnd()
}
