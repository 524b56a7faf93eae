import { Help } from 'commander'
import type { Command } from 'commander'

import { CommandFailure, EXIT_USAGE } from '../controller/failure.ts'

/** Wide enough for a verb a line, where no terminal says otherwise. */
const WIDTH = 100

/** Help with the verbs first, a line each; inherited by every verb. */
export const verbsFirst = {
  helpWidth: Math.max(WIDTH, process.stdout.columns || 0),
  formatHelp: (command: Command, helper: Help): string => {
    const text = Help.prototype.formatHelp.call(helper, command, helper)
    const options = text.search(/^(Arguments|Options):$/m)
    const verbs = text.search(/^Commands:$/m)
    if (options < 0 || verbs < options) return text
    return `${text.slice(0, options)}${text.slice(verbs).trimEnd()}\n\n${text.slice(options, verbs).trimEnd()}\n`
  },
  /** Without `[options]`, which says nothing of a verb and costs its line. */
  subcommandTerm: (command: Command): string => {
    const names = command.registeredArguments.map((argument) => {
      const shown = `${argument.name()}${argument.variadic ? '...' : ''}`
      return argument.required ? `<${shown}>` : `[${shown}]`
    })
    return [command.name(), ...names].join(' ')
  },
}

/** `help`, also of a verb within verbs: `help cluster status` shows what `cluster status --help` does. */
export function addHelp(group: Command, root: Command): void {
  group.helpCommand(false)
  group
    .command('help', { hidden: group !== root })
    .argument('[command...]', 'words of a command, such as: cluster status')
    .description('show the help of a command')
    .addHelpText('after', `\nExamples:\n  ${namesOf(group)} help`)
    .action((words: string[]) => {
      commandNamed(group, words).outputHelp()
    })
}

function commandNamed(group: Command, words: readonly string[]): Command {
  let command = group
  for (const word of words) {
    const inner = command.commands.find((one) => one.name() === word)
    if (inner === undefined) {
      const message = `there is no command '${namesOf(command)} ${word}'; '${namesOf(command)} --help' lists them`
      throw new CommandFailure(EXIT_USAGE, message)
    }
    command = inner
  }
  return command
}

/** `flotilla cluster status`. */
function namesOf(command: Command): string {
  const names = [command.name()]
  for (let at = command.parent; at !== null; at = at.parent) names.unshift(at.name())
  return names.join(' ')
}
