import { Command, CommanderError, InvalidArgumentError } from 'commander'

import { addCluster } from './cluster/program.ts'
import { addCompletion } from './completion/program.ts'
import { addDebug } from './debug/program.ts'
import { addEnrollment } from './enroll/enroll-program.ts'
import { addEvents } from './events/program.ts'
import {
  CommandFailure,
  EXIT_DONE,
  EXIT_FAILED,
  EXIT_USAGE,
  operatorFailure,
} from '../controller/failure.ts'
import { stopOnBrokenPipe } from './terminal/broken-pipe.ts'
import { printJson, printLine } from './terminal/output.ts'
import { addPki } from './pki/program.ts'
import { addNetwork } from './network/program.ts'
import { addRecords } from './records/program.ts'
import { addRouter } from './router/program.ts'
import { addSession } from './session/program.ts'
import { programVersion } from '../controller/version.ts'

/** Runs the program on a command line (as `process.argv`) and sets the process's exit code. */
export async function run(argv: readonly string[]): Promise<void> {
  stopOnBrokenPipe()
  try {
    await buildProgram().parseAsync(argv)
    process.exitCode ??= EXIT_DONE
  } catch (error) {
    process.exitCode = reportFailure(error)
  }
}

function reportFailure(thrown: unknown): number {
  const error = operatorFailure(thrown)
  // Commander has printed its own message; help and version count as done.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_DONE : EXIT_USAGE
  if (error instanceof CommandFailure) {
    process.stderr.write(`flotilla: ${error.message}\n`)
    return error.exitCode
  }
  // A mistake of this program: the stack is what a report of it needs.
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  process.stderr.write(`flotilla: ${text}\n`)
  return EXIT_FAILED
}

function buildProgram(): Command {
  const program = new Command('flotilla')
    .description('The control plane of a zero-trust overlay network, run as a cluster of equals.')
    .exitOverride()
    .version(
      `flotilla ${programVersion()} (node ${process.version})`,
      '--version',
      'print the version',
    )
    .showHelpAfterError('(add --help for what it takes)')
    .configureHelp({ showGlobalOptions: false })
    .addHelpText('after', '\nExit code: 0 done, 1 failed, 2 wrong usage or configuration.')
  addQuickstart(program)
  addController(program)
  addCluster(program)
  addPki(program)
  addEnrollment(program)
  addRouter(program)
  addSession(program)
  addRecords(program)
  addNetwork(program)
  addEvents(program)
  addDebug(program)
  addCompletion(program)
  program
    .command('version')
    .description('print the version')
    .option('--json', 'print JSON')
    .action(({ json }: { json?: boolean }) => {
      const version = programVersion()
      if (json === true) printJson({ version, node: process.version })
      else printLine(`flotilla ${version} (node ${process.version})`)
    })
  return program
}

function addQuickstart(program: Command): void {
  program
    .command('quickstart')
    .description('run a real cluster on loopback in the foreground; the same folder resumes')
    .option('--dir <folder>', 'everything is kept here', '.flotilla')
    .option('--nodes <count>', 'controllers: 1 to 9', integerBetween(1, 9), 3)
    .option('--port <port>', 'HTTPS of the first controller', integerBetween(1, 65_535), 1280)
    .option('--routers <count>', 'routers beside them: 0 to 9', integerBetween(0, 9), 0)
    .addHelpText(
      'after',
      `
Controller K serves HTTPS on PORT+K-1, keeps PORT+100+K-1 for routers and speaks to its peers on PORT+200+K-1.
Routers have a folder each, are enrolled when there are no files of theirs, and connect to every controller.
FOLDER/admin.json holds the administrator's password and the addresses; ^C stops all.

Examples:
  flotilla quickstart
  flotilla quickstart --dir /tmp/five --nodes 5 --port 2280 --routers 2`,
    )
    .action(async (options: { dir: string; nodes: number; port: number; routers: number }) => {
      // Loaded when needed: the small verbs then start in a tenth of a second.
      const { quickstart } = await import('./quickstart/quickstart.ts')
      await quickstart(options)
    })
}

function addController(program: Command): void {
  const controller = program.command('controller').description('run or check one controller')
  controller
    .command('run')
    .argument('<config>', 'its configuration, a YAML file')
    .description('run a controller in the foreground; SIGTERM stops it cleanly within 10 s')
    .addHelpText('after', '\nExample:\n  flotilla controller run /etc/flotilla/config.yml')
    .action(async (config: string) => {
      const { runController } = await import('./controller/run.ts')
      await runController(config)
    })
  controller
    .command('check')
    .argument('<config>', 'its configuration, a YAML file')
    .option('--json', 'print JSON')
    .description('judge configuration, certificates, ports and data folder; start nothing')
    .addHelpText(
      'after',
      `
Exit code 2 lists every fault of the configuration with its line, 1 what else stands in the way and the remedy.

Example:
  flotilla controller check /etc/flotilla/config.yml`,
    )
    .action(async (config: string, options: { json?: boolean }) => {
      const { checkController } = await import('./controller/check-command.ts')
      await checkController(config, options)
    })
  controller
    .command('formed')
    .argument('<config>', 'its configuration, a YAML file')
    .description(
      'for scripts: exit 0 when it was formed or has joined, 1 when that is still to be done',
    )
    .action(async (config: string) => {
      const { tellFormed } = await import('./controller/formed-command.ts')
      tellFormed(config)
    })
  controller
    .command('options')
    .description('print every option of the configuration, as Markdown')
    .action(async () => {
      const { configurationDocument } = await import('../config/document.ts')
      printLine(configurationDocument().trimEnd())
    })
}

function integerBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`Expected an integer from ${min} to ${max}.`)
  }
}
