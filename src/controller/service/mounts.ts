import { existsSync } from 'node:fs'
import { join } from 'node:path'

import type { FileMount } from '../../api/files/file-mount.ts'
import { FileSet } from '../../api/files/file-set.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { PACKAGE_ROOT } from '../../lib/runtime/package-root.ts'
import { CommandFailure, EXIT_FAILED } from '../failure.ts'

export const CONSOLE_PATH = '/console'
/** Output folder of tools/build-console.ts, in a clone and in a package. */
const consoleFolder = join(PACKAGE_ROOT, 'dist', 'console')

type WebListener = ControllerConfig['web'][number]

/**
 * The static files that a listener serves, read from disk.
 * @throws {CommandFailure} when the folder of `spa` cannot be served.
 */
export function mountsOf({ apis, spa }: Pick<WebListener, 'apis' | 'spa'>): FileMount[] {
  return [
    ...(apis.includes('console') ? [consoleMount()] : []),
    ...(apis.includes('spa') && spa !== null ? [spaMount(spa)] : []),
  ]
}

/** A clone without a built console still serves everything else. */
function consoleMount(): FileMount {
  const files = existsSync(join(consoleFolder, 'index.html')) ? FileSet.load(consoleFolder) : null
  const missing = "the console is not built; run 'make console' and start the controller again"
  return { path: CONSOLE_PATH, policy: 'console', files, missing }
}

function spaMount({ path, folder }: NonNullable<WebListener['spa']>): FileMount {
  try {
    const files = FileSet.load(folder)
    if (files.get('index.html') === null) throw new Error('it has no index.html')
    return { path, policy: 'spa', files, missing: '' }
  } catch (error) {
    const reason = `web spa.folder: cannot serve ${folder}: ${errorMessage(error)}`
    throw new CommandFailure(EXIT_FAILED, reason, error)
  }
}
