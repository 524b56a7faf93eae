import { Option } from 'commander'
import type { Command } from 'commander'

import { LOG_LEVELS } from '../../config/options.ts'
import { routerKeyAlgorithms } from '../../pki/router-key-algorithms.ts'
import { printLine } from '../terminal/output.ts'
import type { CheckRouterOptions } from './check.ts'
import type { EnrollRouterOptions } from './enroll.ts'
import type { RunRouterOptions } from './run.ts'

/** The `router` verbs. What they do is loaded when needed. */
export function addRouter(program: Command): void {
  const router = program.command('router').description('check, enroll or run a router')
  router
    .command('check')
    .argument('<config>', 'its configuration, a YAML file')
    .option('--print', 'print the effective configuration, each value with where it is from')
    .option('--json', 'print JSON')
    .description('judge a configuration as a whole; start nothing')
    .addHelpText(
      'after',
      `
Exit code 2 lists every fault with its line, what was found, what is allowed and the nearest known key.

Examples:
  flotilla router check router.yml
  flotilla router check router.yml --print`,
    )
    .action(async (config: string, options: CheckRouterOptions) => {
      const { checkRouter } = await import('./check.ts')
      checkRouter(config, options)
    })
  router
    .command('enroll')
    .argument('<config>', 'its configuration, a YAML file')
    .requiredOption('--jwt <file>', 'file of the enrollment token (JWT), or - for standard input')
    .addOption(
      new Option('--key-alg <kind>', 'of the key that is made')
        .choices(routerKeyAlgorithms)
        .default('EC:P-256'),
    )
    .option('--force', 'write over the files of an earlier enrollment')
    .option('--json', 'print JSON')
    .description('turn an enrollment token into the files that identity names')
    .addHelpText(
      'after',
      `
The controller that the token names must show the certificate that signed it; nothing is sent before. The key is made here
and stays here. Interrupted, the same command goes on with the same key.

Example:
  flotilla router enroll router.yml --jwt router.jwt`,
    )
    .action(async (config: string, options: EnrollRouterOptions) => {
      const { enrollRouter } = await import('./enroll.ts')
      await enrollRouter(config, options)
    })
  router
    .command('run')
    .argument('<config>', 'its configuration, a YAML file')
    .option('--extend', 'have the certificates extended at once, whatever time they have left')
    .addOption(
      new Option('--log-level <level>', 'least severe lines that are written')
        .choices(LOG_LEVELS)
        .default('info'),
    )
    .description('run a router in the foreground; SIGTERM or ^C stops it cleanly')
    .addHelpText(
      'after',
      `
It connects to every current controller, shows as online there, and makes links to other routers. Circuits and clients are
not served yet; the log says at the start which sections of the configuration carry no data.

Example:
  flotilla router run router.yml`,
    )
    .action(async (config: string, options: RunRouterOptions) => {
      const { runRouter } = await import('./run.ts')
      await runRouter(config, options)
    })
  router
    .command('options')
    .description('print every key of the configuration, as Markdown')
    .action(async () => {
      const { routerConfigurationDocument } = await import('../../router/config/document.ts')
      printLine(routerConfigurationDocument().trimEnd())
    })
}
