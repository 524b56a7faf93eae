import { type Command, Help, type Option } from 'commander'

import { commandFullName, unknownCommandFailure } from './command-names.ts'

/**
 * Minimum width of the help, also used if the terminal does not report its width; wide enough for
 * one command on each line.
 */
const WIDTH = 100

/** Help format: lists the subcommands before the options, one on each line. */
export const subcommandsFirstHelpFormat = {
  helpWidth: Math.max(WIDTH, process.stdout.columns || 0),
  formatHelp: (command: Command, helper: Help): string => {
    const text = Help.prototype.formatHelp.call(helper, command, helper)
    const options = text.search(/^(Arguments|Options):$/m)
    const commands = text.search(/^Commands:$/m)
    if (options < 0 || commands < options) return text
    return `${text.slice(0, options)}${text.slice(commands).trimEnd()}\n\n${text.slice(options, commands).trimEnd()}\n`
  },
  /** Hides the default of a repeatable option, which Commander would show as an empty list. */
  optionDescription: (option: Option): string => {
    const isEmpty = Array.isArray(option.defaultValue) && option.defaultValue.length === 0
    return isEmpty ? option.description : Help.prototype.optionDescription.call(null, option)
  },
  /** Omits `[options]` from the lines of the list of subcommands. */
  subcommandTerm: (command: Command): string => {
    const names = command.registeredArguments.map((argument) => {
      const shown = `${argument.name()}${argument.variadic ? '...' : ''}`
      return argument.required ? `<${shown}>` : `[${shown}]`
    })
    return [command.name(), ...names].join(' ')
  },
}

/**
 * Adds `help` for nested commands: `help cluster status` shows the same as `cluster status --help`.
 */
export function addHelpCommand(group: Command, root: Command): void {
  group.helpCommand(false)
  group
    .command('help', { hidden: group !== root })
    .argument('[command...]', 'command, such as: cluster status')
    .description('show the help of a command')
    .addHelpText('after', `\nExamples:\n  ${commandFullName(group)} help`)
    .action((words: string[]) => {
      commandNamed(group, words).outputHelp()
    })
}

function commandNamed(group: Command, words: readonly string[]): Command {
  let command = group
  for (const word of words) {
    const inner = command.commands.find((one) => one.name() === word)
    if (inner === undefined) throw unknownCommandFailure(command, word)
    command = inner
  }
  return command
}
