import { type Command, Option } from 'commander'

import { inspectionLimits } from '../../api/fabric/inspections.ts'
import { addContextOption } from '../client/connection-options.ts'
import type { InspectOptions } from './inspect.ts'

/** Values that are useful on the command line; the API documents all values. */
export const commonInspectionValues = [
  'config',
  'cluster-config',
  'cluster-status',
  'connected-peers',
  'connected-routers',
  'data-model-index',
  'identity-connection-statuses',
  'links',
  'metrics',
  'router-circuits',
  'router-data-model-index',
  'router-messaging',
  'runtime',
  'stackdump',
  'terminator-costs',
] as const

/** The command `inspect`. Its code is loaded when it runs. */
export function addInspectCommand(program: Command): void {
  addContextOption(program.command('inspect'))
    .argument('<pattern>', 'regular expression for controller ids and for router ids or names')
    .argument('<value...>', `up to ${inspectionLimits.requestedValuesMax} names of values`)
    .addOption(
      new Option('-o, --output <format>', 'output format')
        .choices(['yaml', 'json'])
        .default('yaml'),
    )
    .description('show the state inside controllers and routers')
    .addHelpText(
      'after',
      `
Sends the request to each controller of the context; routers answer through them. Needs ops.read. A controller or router
that does not know a value omits it. If one gives no answer, the others are shown and the exit code is 5.

Values, among others:
  ${commonInspectionValues.slice(0, 5).join(', ')},
  ${commonInspectionValues.slice(5, 9).join(', ')},
  ${commonInspectionValues.slice(9).join(', ')}

Examples:
  flotilla inspect . runtime
  flotilla inspect '^ctrl1$' connected-routers cluster-status
  flotilla inspect edge1 links router-circuits -o json`,
    )
    .action(async (pattern: string, values: string[], options: InspectOptions) => {
      const { printInspection } = await import('./inspect.ts')
      await printInspection(pattern, values, options)
    })
}
