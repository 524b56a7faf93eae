import { existsSync } from 'node:fs'

import { type Command, Option } from 'commander'

import { CommandFailure, EXIT_USAGE } from '../controller/command-failure.ts'
import { unknownCommandFailure } from './command-names.ts'
import { addHelpCommand } from './help.ts'
import { type OutputFormat, outputFormats, setOutputFormat } from './terminal/output.ts'

/** Default path of the controller's configuration. */
export const DEFAULT_CONFIG_PATH = '/etc/flotilla/config.yml'
export const CONFIG_PATH_VARIABLE = 'FLOTILLA_CONFIG'

const CONFIG_PLACES = `$${CONFIG_PATH_VARIABLE}, else ${DEFAULT_CONFIG_PATH}`

/**
 * A command that has one of these options requires no configuration if the user gives that option.
 */
const insteadOfConfig = ['context', 'url', 'data', 'router', 'tunnel'] as const

/**
 * Adds the common conventions to the commands: `-o` where there is JSON output, the search for the
 * configuration where a command uses one, and `help` with several words in each group. Called once,
 * after all commands are defined.
 */
export function addCommonCommandOptions(program: Command): void {
  const commands = allCommands(program)
  const withFormats = new Set(commands.filter(addOutput))
  const required = new Set(commands.filter(addConfig))
  for (const command of commands) addConfigArgument(command)
  for (const group of [program, ...commands.filter(isGroup)]) {
    addHelpCommand(group, program)
    refuseUnknown(group)
  }
  for (const command of commands) showUsageAfterError(command)
  program.hook('preAction', (_, command) => {
    useOutput(command, withFormats.has(command))
    useConfig(command, required.has(command))
  })
}

/** Subcommands and groups below `command`, at any depth. */
export function allCommands(command: Command): Command[] {
  return command.commands.flatMap((inner) => [inner, ...allCommands(inner)])
}

function isGroup(command: Command): boolean {
  return command.commands.length > 0
}

/**
 * Replaces Commander's suggestions for unknown commands, which search only one group; the intended
 * command is often in another group.
 */
function refuseUnknown(group: Command): void {
  group.on('command:*', ([word = '']: string[]) => {
    throw unknownCommandFailure(group, word)
  })
}

/**
 * Shows the whole usage line after an error, because it is clearer than the name of the missing
 * argument.
 */
function showUsageAfterError(command: Command): void {
  if (isGroup(command)) return
  const usage = command.createHelp().commandUsage(command)
  command.showHelpAfterError(`usage: ${usage}; --help explains it`)
}

function optionOf(command: Command, long: string): Option | undefined {
  return command.options.find((option) => option.long === long)
}

/**
 * Adds `-o` to a command that can print JSON, so that it can also print YAML.
 * @returns false if the command has no JSON output, or defines `--output` itself.
 */
function addOutput(command: Command): boolean {
  const json = optionOf(command, '--json')
  if (json === undefined) return false
  // Kept because scripts use `--json`; hidden in the help, because `-o json` is the same.
  json.description = 'same as -o json'
  json.hidden = true
  if (optionOf(command, '--output') !== undefined) return false
  command.addOption(
    new Option('-o, --output <format>', 'output format')
      .choices(outputFormats)
      .default('table' satisfies OutputFormat),
  )
  return true
}

/**
 * Applies the chosen output format. A command that defines `--output` itself, for example with the
 * additional format `name`, applies that option itself.
 */
function useOutput(command: Command, hasFormats: boolean): void {
  const { json, output = 'table' } = command.opts<{ json?: boolean; output?: OutputFormat }>()
  const chosen = json === true ? 'json' : hasFormats ? output : 'table'
  setOutputFormat(chosen)
  if (chosen !== 'table') command.setOptionValue('json', true)
}

/**
 * Makes the `--config` option optional for Commander, and describes its default in the help;
 * {@link useConfig} sets the default.
 * @returns true if the command requires a configuration.
 */
function addConfig(command: Command): boolean {
  const option = optionOf(command, '--config')
  if (option === undefined) return false
  const isRequired = option.mandatory
  // Commander would refuse the command before this code has read the environment, so the option is
  // not mandatory for Commander.
  option.mandatory = false
  option.description = `${option.description} (default: ${CONFIG_PLACES})`
  return isRequired
}

function useConfig(command: Command, isRequired: boolean): void {
  const option = optionOf(command, '--config')
  if (option === undefined || isAnswered(command) || isConfigArgumentGiven(command)) return
  const found =
    process.env[CONFIG_PATH_VARIABLE] ||
    (existsSync(DEFAULT_CONFIG_PATH) ? DEFAULT_CONFIG_PATH : null)
  if (found !== null) {
    command.setOptionValueWithSource('config', found, 'env')
    return
  }
  if (!isRequired) return
  const message = `name a configuration: --config FILE, or ${CONFIG_PATH_VARIABLE} in the environment; there is none at ${DEFAULT_CONFIG_PATH}`
  throw new CommandFailure(EXIT_USAGE, message)
}

/**
 * Gives the argument `[config]`, in a command that needs an existing configuration, the same
 * default as the `--config` option.
 */
function addConfigArgument(command: Command): void {
  const argument = command.registeredArguments.find((one) => one.name() === 'config')
  // In a command that also has a `--config` option, only the option gets the default.
  if (argument === undefined || argument.required || optionOf(command, '--config')) return
  argument.default(process.env[CONFIG_PATH_VARIABLE] || DEFAULT_CONFIG_PATH, CONFIG_PLACES)
}

function isConfigArgumentGiven(command: Command): boolean {
  const at = command.registeredArguments.findIndex((one) => one.name() === 'config')
  return at >= 0 && command.args[at] !== undefined
}

/**
 * True if the command line names a configuration, or has an option that makes the configuration
 * unnecessary.
 */
function isAnswered(command: Command): boolean {
  const options = command.opts<Record<string, unknown>>()
  const hasFiles =
    command.registeredArguments.some(({ variadic }) => variadic) && command.args.length > 0
  return hasFiles || ['config', ...insteadOfConfig].some((name) => options[name] !== undefined)
}
