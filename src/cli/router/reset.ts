import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

import { configuredEndpoints } from '../../config/router/router-relations.ts'
import type { RouterConfig } from '../../config/router/table.ts'
import { CommandFailure, EXIT_FAILED, toOperatorFailure } from '../../controller/command-failure.ts'
import { runAsFileOwner } from '../../controller/run-as-file-owner.ts'
import { setAside } from '../../controller/start/set-aside.ts'
import { systemClock } from '../../lib/clock.ts'
import { printableValue } from '../../lib/text/terminal-text.ts'
import { readEndpoints } from '../../router/controllers/endpoints-file.ts'
import { printJson, printLine } from '../terminal/output.ts'
import { startCommand, unitName } from '../terminal/start-command.ts'
import { loadCheckedRouterConfig } from './check.ts'
import { resetCommand } from './reset-command.ts'
import { isRouterRunning } from './running-router.ts'

export interface ResetRouterOptions {
  readonly json?: boolean
}

/** Output of `router reset --json`. */
interface ResetResult {
  /** The endpoints file; null: the router has none, so it had learned nothing. */
  readonly file: string | null
  /** Path of the kept copy of the endpoints file; null if there was no file. */
  readonly copy: string | null
  /** IDs of the controllers that the router had learned, sorted. */
  readonly forgotten: readonly string[]
  /** Number of keys of removed controllers that the router had learned. */
  readonly forgottenRemovedKeys: number
  /** Addresses in the configuration, with which the router begins. */
  readonly controllers: readonly string[]
}

/**
 * Makes a stopped router forget the controllers and keys that it has learned, so that it begins
 * with the controllers of its configuration. It keeps the file with the learned values as a copy.
 * @throws {CommandFailure} exit 2 for an invalid configuration; 1 if the router is running, or if
 * its configuration names no controller.
 */
export async function resetRouter(path: string, options: ResetRouterOptions): Promise<void> {
  // The owner of the configuration decides which file is moved, so root must not move it with more
  // rights than this owner has.
  const result = await runAsFileOwner(path, () =>
    runAsFileOwner(dirname(resolve(path)), () => reset(path)),
  )
  if (options.json === true) printJson(result)
  else printLine(resultText(path, result))
}

async function reset(path: string): Promise<ResetResult> {
  const { config } = loadCheckedRouterConfig(path)
  const controllers = configuredEndpoints(config).map(({ text }) => text)
  if (controllers.length === 0) throw noControllerFailure(path, config)
  if (await isRouterRunning(path)) throw runningFailure(path)
  const { endpointsFile } = config.ctrl
  return await runAsFileOwner(dirname(endpointsFile), () => {
    if (!existsSync(endpointsFile)) {
      return { file: null, copy: null, forgotten: [], forgottenRemovedKeys: 0, controllers }
    }
    const read = readEndpoints(endpointsFile)
    const known = read.kind === 'known' ? read.known : null
    return {
      file: endpointsFile,
      copy: moveAside(endpointsFile),
      forgotten: known?.controllers.map(({ id }) => id).sort() ?? [],
      forgottenRemovedKeys: known?.removed.length ?? 0,
      controllers,
    }
  })
}

/** @throws {CommandFailure} exit 1 if the file cannot be renamed. */
function moveAside(path: string): string {
  try {
    return setAside(path, systemClock.nowMs())
  } catch (error) {
    throw toOperatorFailure(error)
  }
}

function noControllerFailure(path: string, { ctrl }: RouterConfig): CommandFailure {
  const read = readEndpoints(ctrl.endpointsFile)
  const known = read.kind === 'known' ? read.known.controllers : []
  const addresses = printableValue(known.flatMap((one) => one.addresses))
  const learned = addresses.length === 0 ? '' : ` (the router had learned ${addresses.join(', ')})`
  return new CommandFailure(
    EXIT_FAILED,
    `${path}: ctrl names no controller, so a router without its list would reach none; add the addresses of the present controllers to ctrl.endpoints${learned}`,
  )
}

function runningFailure(path: string): CommandFailure {
  const unit = unitName('router', path)
  const steps =
    unit === null
      ? `stop it with SIGTERM or ^C, repeat this command, and start it with: ${startCommand('router', path)}`
      : `type: systemctl stop ${unit}; ${resetCommand(path)}; systemctl start ${unit}`
  return new CommandFailure(
    EXIT_FAILED,
    `the router with the configuration ${path} is running and would write its list of controllers again, so nothing was changed; ${steps}`,
  )
}

function resultText(path: string, result: ResetResult): string {
  const { copy, forgotten, forgottenRemovedKeys, controllers } = printableValue(result)
  const keys = forgottenRemovedKeys === 1 ? '1 key' : `${forgottenRemovedKeys} keys`
  const removed = forgottenRemovedKeys === 0 ? '' : `, and ${keys} of removed controllers`
  return [
    copy === null
      ? 'the router had learned no controllers; nothing was changed'
      : `forgot the controllers ${forgotten.join(', ') || '(none)'}${removed}; the former list is now ${copy}`,
    `the router begins with the controllers of its configuration: ${controllers.join(', ')}`,
    `start it with: ${startCommand('router', path)}`,
  ].join('\n')
}
