import { Argument, type Command, Option } from 'commander'

import { routerTypes, type RouterType } from '../../config/router/commented-config.ts'
import { LOG_LEVELS } from '../../config/controller/options.ts'
import { routerKeyAlgorithms } from '../../pki/authority/router-key-algorithms.ts'
import { printLine } from '../terminal/output.ts'
import type { CheckRouterOptions } from './check.ts'
import type { EnrollRouterOptions } from './enroll.ts'
import type { InitRouterOptions } from './init.ts'
import type { ResetRouterOptions } from './reset.ts'
import type { RunRouterOptions } from './run.ts'
import { createIntegerOptionParser } from '../terminal/integer-option.ts'

/** The `router` commands. Their code is loaded when one of them runs. */
export function addRouterCommands(program: Command): void {
  const router = program.command('router').description('configure, enroll, run or reset a router')
  addInit(router)
  router
    .command('check')
    .argument('<config>', 'configuration file, YAML')
    .option('--config-only', 'judge the file alone: for CI, and while the router runs')
    .option('--strict', 'refuse a configuration with warnings, such as an unknown key')
    .option('--print', 'print the effective configuration, each value with its source')
    .option('--json')
    .description('validate a configuration; start nothing')
    .addHelpText(
      'after',
      `
Exit code 2 lists every fault with its line, the value found and the values allowed. Exit code 1 names each fault of this
host: a port that the router cannot open, a key or certificate that it cannot use, or that it knows no controller. With
--config-only, the command does not check this host.

Files of OpenZiti may contain keys that have no effect here, so an unknown key is only a warning. A misspelled section is
an unknown key, too: read the warnings, or let --strict refuse them (exit code 2).

Examples:
  flotilla router check router.yml
  flotilla router check router.yml --print
  flotilla router check router.yml --config-only --strict`,
    )
    .action(async (config: string, options: CheckRouterOptions) => {
      const { checkRouter } = await import('./check.ts')
      await checkRouter(config, options)
    })
  router
    .command('enroll')
    .argument('<config>', 'configuration file, YAML')
    .requiredOption('--jwt <file>', 'file of the enrollment token (JWT), or - for standard input')
    .addOption(
      new Option('--key-alg <kind>', 'type of the key that is created')
        .choices(routerKeyAlgorithms)
        .default('EC:P-256'),
    )
    .option(
      '--controller <url>',
      'address of the controller that created the token (default: the one in the token)',
    )
    .option('--force', 'overwrite the files of an earlier enrollment')
    .option('--json')
    .description('enroll a router with an enrollment token')
    .addHelpText(
      'after',
      `
Writes the files that the section identity of the configuration names. Nothing is sent until the controller named by the
token has presented the certificate that signed it. The key is created on this host and never leaves it. After an
interruption, rerun the same command; it uses the same key.

Use --controller when the address in the token is for other networks, for example behind NAT or published ports of
containers. The controller at that address must have signed the token.

Examples:
  flotilla router enroll router.yml --jwt router.jwt
  flotilla router enroll router.yml --jwt router.jwt --controller https://ctrl1:1280`,
    )
    .action(async (config: string, options: EnrollRouterOptions) => {
      const { enrollRouter } = await import('./enroll.ts')
      await enrollRouter(config, options)
    })
  router
    .command('run')
    .argument('<config>', 'configuration file, YAML')
    .option('--extend', 'renew the certificates at once, even if they are not due')
    .addOption(
      new Option('--log-level <level>', 'minimum severity of log lines')
        .choices(LOG_LEVELS)
        .default('info'),
    )
    .description('run a router in the foreground; SIGTERM or ^C stops it')
    .addHelpText(
      'after',
      `
Connects to every current controller, links to other routers, carries circuits and serves clients. The log names the
sections of the configuration that have no effect.

Examples:
  flotilla router run router.yml`,
    )
    .action(async (config: string, options: RunRouterOptions) => {
      const { runRouter } = await import('./run.ts')
      await runRouter(config, options)
    })
  addReset(router)
  router
    .command('options')
    .description('print every key of the configuration, as Markdown')
    .addHelpText('after', '\nExamples:\n  flotilla router options')
    .action(async () => {
      const { renderRouterConfigReference } =
        await import('../../config/router/config-reference.ts')
      printLine(renderRouterConfigReference().trimEnd())
    })
}

function addReset(router: Command): void {
  router
    .command('reset')
    .argument('<config>', 'configuration file, YAML')
    .option('--json')
    .description('forget the controllers and keys that a stopped router has learned')
    .addHelpText(
      'after',
      `
Use this after a restore into a new cluster, whose controllers have keys that the router refuses. First check that ctrl
in the configuration names the present controllers, and no stolen or removed one: the router begins with these. The
command moves the file ctrl.endpointsFile to a copy with the time in its name, and keeps the last two copies.

Examples:
  systemctl stop flotilla-router@edge1
  flotilla router reset /etc/flotilla/edge1/router.yml
  systemctl start flotilla-router@edge1`,
    )
    .action(async (config: string, options: ResetRouterOptions) => {
      const { resetRouter } = await import('./reset.ts')
      await resetRouter(config, options)
    })
}

function addInit(router: Command): void {
  router
    .command('init')
    .addArgument(new Argument('<type>', 'kind of router').choices(routerTypes))
    .argument('<config>', 'configuration file to write, YAML')
    .option('--name <name>', 'base name of the identity files (default: first part of the host)')
    .option(
      '--advertise <host>',
      'host name or IP address for clients and other routers (default: the host name)',
    )
    .option(
      '--controller <host:port>',
      'router port of a controller; may be repeated (default: those of the enrollment token)',
      (one: string, before: string[]) => [...before, one],
      [],
    )
    .option('--edge-port <port>', 'port for clients', createIntegerOptionParser(1, 65_535), 3022)
    .option(
      '--link-port <port>',
      'port for other routers',
      createIntegerOptionParser(1, 65_535),
      3023,
    )
    .addOption(
      new Option('--mode <mode>', 'of the type tunnel')
        .choices(['host', 'proxy', 'tproxy'])
        .default('host'),
    )
    .option('--json')
    .description('write a complete, commented configuration')
    .addHelpText(
      'after',
      `
Types:
  edge     serves clients, and accepts links of other routers
  private  serves clients of its network; dials other routers, and none dials it
  tunnel   hosts services at this host, and offers services to its programs

An existing file is never changed.

Examples:
  flotilla router init edge router.yml --advertise router1.example.net
  flotilla router init private router.yml --controller ctrl1.example.net:1380
  flotilla router init tunnel router.yml --mode tproxy`,
    )
    .action(async (type: RouterType, config: string, options: InitRouterOptions) => {
      const { initRouter } = await import('./init.ts')
      await initRouter(type, config, options)
    })
}
