import { Command } from 'commander'

import { EXIT_SUCCESS } from '../controller/command-failure.ts'
import { programVersion } from '../controller/version.ts'
import { addAccessCommands } from './access/program.ts'
import { addClusterCommands } from './cluster/program.ts'
import { addCompletionCommands } from './completion.ts'
import { addDebugCommands } from './debug/program.ts'
import {
  addCommonCommandOptions,
  CONFIG_PATH_VARIABLE,
  DEFAULT_CONFIG_PATH,
} from './common-command-options.ts'
import { addEnrollmentCommands } from './enroll/enroll-program.ts'
import { addEventsCommand } from './events/program.ts'
import { subcommandsFirstHelpFormat } from './help.ts'
import { addHistoryCommand } from './history/program.ts'
import { addInspectCommand } from './inspect/program.ts'
import { addLogCommands } from './debug/log-program.ts'
import { addMigrateCommands } from './migrate/program.ts'
import { addOnboardingCommands } from './onboarding/program.ts'
import { addNetworkCommands } from './network/program.ts'
import { addPkiCommands } from './pki/program.ts'
import { addRecordCommands } from './records/program.ts'
import { addRouterCommands } from './router/program.ts'
import { addSessionCommands } from './log-in/session-program.ts'
import { addSignerCommands } from './signers/program.ts'
import { addTrafficCommand } from './traffic/program.ts'
import { addTunnelCommands } from './tunnel/program.ts'
import { stopOnBrokenPipe } from './terminal/broken-pipe.ts'
import { exitCodes } from './terminal/exit-codes.ts'
import { isJsonRequested, reportFailure } from './terminal/failure-report.ts'
import { printJson, printLine } from './terminal/output.ts'
import { createIntegerOptionParser } from './terminal/integer-option.ts'

/**
 * Runs the program with the given arguments (like `process.argv`) and sets the exit code of the
 * process.
 */
export async function runCommandLine(argv: readonly string[]): Promise<void> {
  stopOnBrokenPipe()
  const isJson = isJsonRequested(argv)
  try {
    await buildProgram(isJson).parseAsync(contextLast(argv))
    process.exitCode ??= EXIT_SUCCESS
  } catch (error) {
    process.exitCode = reportFailure(error, isJson)
  }
}

/**
 * Moves `--context` behind the command: the option belongs to the command, but users also type it
 * before the command.
 */
function contextLast(argv: readonly string[]): readonly string[] {
  const [node = '', script = '', first = '', ...rest] = argv
  const option = first === '--context' ? [first, ...rest.splice(0, 1)] : [first]
  if (!first.startsWith('--context') || rest.length === 0) return argv
  const end = rest.indexOf('--')
  const at = end < 0 ? rest.length : end
  return [node, script, ...rest.slice(0, at), ...option, ...rest.slice(at)]
}

/**
 * All commands, with their options and help.
 * @param isJson true: errors in the command line are printed as JSON by `reportFailure`, not by
 * Commander.
 */
export function buildProgram(isJson = false): Command {
  const program = new Command('flotilla')
    .description(
      'The control plane of a zero-trust overlay network, run as a cluster of equal controllers.',
    )
    .exitOverride()
    .configureHelp(subcommandsFirstHelpFormat)
    .version(versionLine(), '-v, --version', 'print the version')
    .showHelpAfterError('--help lists commands and options')
    .addHelpText(
      'after',
      `
A controller's configuration is --config FILE, else $${CONFIG_PATH_VARIABLE}, else ${DEFAULT_CONFIG_PATH}.
Commands that print data take -o json (or --json) and -o yaml; with -o json, errors on stderr are JSON as well.
Exit codes:
${exitCodeLines()}

Examples:
  flotilla quickstart
  flotilla cluster status
  flotilla help cluster init`,
    )
  if (isJson) program.configureOutput({ outputError: () => undefined, writeErr: () => undefined })
  addQuickstart(program)
  addDemo(program)
  addController(program)
  addClusterCommands(program)
  addPkiCommands(program)
  addEnrollmentCommands(program)
  addOnboardingCommands(program)
  addRouterCommands(program)
  addTunnelCommands(program)
  addSessionCommands(program)
  addRecordCommands(program)
  addSignerCommands(program)
  addInspectCommand(program)
  addTrafficCommand(program)
  addAccessCommands(program)
  addHistoryCommand(program)
  addNetworkCommands(program)
  addMigrateCommands(program)
  addLogCommands(program)
  addEventsCommand(program)
  addDebugCommands(program)
  addCompletionCommands(program)
  addVersion(program)
  addCommonCommandOptions(program)
  return program
}

function exitCodeLines(): string {
  return exitCodes.map(({ code, meaning }) => `  ${code}  ${meaning}`).join('\n')
}

function versionLine(): string {
  return `flotilla ${programVersion()} (node ${process.version})`
}

function addVersion(program: Command): void {
  program
    .command('version')
    .description('print the version')
    .option('--json')
    .addHelpText('after', '\nExamples:\n  flotilla version\n  flotilla version -o json')
    .action(({ json }: { json?: boolean }) => {
      if (json === true) printJson({ version: programVersion(), node: process.version })
      else printLine(versionLine())
    })
}

function addQuickstart(program: Command): void {
  program
    .command('quickstart')
    .description('run a local cluster for evaluation')
    .option('--dir <folder>', 'folder of all files; an existing one resumes', '.flotilla')
    .option('--nodes <count>', 'number of controllers, 1 to 9', createIntegerOptionParser(1, 9), 3)
    .option(
      '--port <port>',
      'HTTPS port of the first controller',
      createIntegerOptionParser(1, 65_535),
      1280,
    )
    .option('--routers <count>', 'number of routers, 0 to 9', createIntegerOptionParser(0, 9), 0)
    .addHelpText(
      'after',
      `
Controller K listens on PORT+K-1 for HTTPS, on PORT+100+K-1 for routers and on PORT+200+K-1 for its peers. Router K
listens on PORT+300+K-1 for links, on PORT+400+K-1 for 'flotilla demo' and on PORT+500+K-1 for clients. Each has a
separate folder; a router is enrolled on its first start. FOLDER/admin.json contains the administrator's password and
the addresses. ^C stops all processes.

Examples:
  flotilla quickstart
  flotilla quickstart --dir /tmp/five --nodes 5 --port 2280 --routers 2`,
    )
    .action(async (options: { dir: string; nodes: number; port: number; routers: number }) => {
      // Loaded only when needed, so that small commands start in a tenth of a second.
      const { runQuickstart } = await import('./quickstart/quickstart.ts')
      await runQuickstart(options)
    })
}

function addDemo(program: Command): void {
  program
    .command('demo')
    .description('fetch a page through the routers of a quickstart')
    .option('--dir <folder>', 'folder of the quickstart', '.flotilla')
    .option('--keep', 'keep the service until ^C', false)
    .addHelpText(
      'after',
      `
Needs a running quickstart with routers. Serves a page on a loopback port, makes the service \`demo\` for it with a
terminator at the last router and the policies it needs, fetches the page at the first router, and prints the page and
the path of the circuit. Then removes these records.

Examples:
  flotilla demo
  flotilla demo --dir /tmp/five --keep`,
    )
    .action(async (options: { dir: string; keep: boolean }) => {
      const { runDemo } = await import('./quickstart/demo.ts')
      await runDemo(options)
    })
}

function addController(program: Command): void {
  const controller = program.command('controller').description('run or check one controller')
  controller
    .command('run')
    .argument('[config]', 'configuration file, YAML')
    .description('run a controller in the foreground; SIGTERM stops it within 10 s')
    .addHelpText('after', '\nExamples:\n  flotilla controller run /etc/flotilla/config.yml')
    .action(async (config: string) => {
      const { runController } = await import('./controller/run.ts')
      await runController(config)
    })
  controller
    .command('check')
    .argument('[config]', 'configuration file, YAML')
    .option('--config-only', 'judge the file alone: for CI, and while the controller runs')
    .option('--json')
    .description('validate configuration, certificates, ports and data folder')
    .addHelpText(
      'after',
      `
Starts nothing. Exit code 2: the configuration is invalid, every fault is printed with its line. Exit code 1: something
else keeps the controller from starting; every obstacle is printed with its remedy. With --config-only no port and no
data folder is looked at, and of the other files only those that backups need; a missing one is a warning.

Examples:
  flotilla controller check /etc/flotilla/config.yml
  flotilla controller check --config-only config.yml`,
    )
    .action(async (config: string, options: { configOnly?: boolean; json?: boolean }) => {
      const { checkController } = await import('./controller/check-command.ts')
      await checkController(config, options)
    })
  controller
    .command('reload')
    .argument('[config]', 'configuration file, YAML')
    .option('--json')
    .description('make the running controller read its configuration and certificates again')
    .addHelpText(
      'after',
      `
Prints for each changed option whether it is in force or needs a restart; 'flotilla controller options' lists which is
which. SIGHUP does the same, and writes to the log. Exit code 2: the configuration is invalid. Exit code 1: the
controller does not answer, or rejects files. Nothing changes with an invalid configuration.

Examples:
  flotilla controller reload /etc/flotilla/config.yml`,
    )
    .action(async (config: string, options: { json?: boolean }) => {
      const { reloadController } = await import('./controller/reload-command.ts')
      await reloadController(config, options)
    })
  controller
    .command('formed')
    .argument('<config>', 'configuration file, YAML')
    .description('exit 0 if the controller is part of a cluster (init or join is done), 1 if not')
    .option('--json')
    .addHelpText(
      'after',
      `
For scripts that run cluster init or cluster join only once.

Examples:
  flotilla controller formed /etc/flotilla/config.yml`,
    )
    .action(async (config: string, { json }: { json?: boolean }) => {
      const { requireCreatedController } = await import('./controller/formed-command.ts')
      requireCreatedController(config, json === true)
    })
  controller
    .command('options')
    .description('print every option of the configuration, as Markdown')
    .addHelpText('after', '\nExamples:\n  flotilla controller options')
    .action(async () => {
      const { renderControllerConfigReference } =
        await import('../config/controller/config-reference.ts')
      printLine(renderControllerConfigReference().trimEnd())
    })
}
