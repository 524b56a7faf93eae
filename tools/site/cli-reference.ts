import type { Command } from 'commander'

import { allCommands } from '../../src/cli/common-command-options.ts'
import { commandFullName } from '../../src/cli/command-names.ts'
import { buildProgram } from '../../src/cli/program.ts'

/** Columns of the help, independent of the terminal of the build. */
const WIDTH = 100

/**
 * The help of every command, below a heading each; groups of commands are headings above theirs.
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

/** The help with the text after its options, which Commander leaves out of `helpInformation`. */
function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => WIDTH })
  command.configureHelp({ ...command.configureHelp(), helpWidth: WIDTH })
  command.outputHelp()
  return text.trimEnd()
}
