import type { Command } from 'commander'

import { printLine } from '../terminal/output.ts'
import type { CheckRouterOptions } from './check.ts'

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
    .command('options')
    .description('print every key of the configuration, as Markdown')
    .action(async () => {
      const { routerConfigurationDocument } = await import('../../router/config/document.ts')
      printLine(routerConfigurationDocument().trimEnd())
    })
}
