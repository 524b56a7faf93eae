import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { readFence } from '../../store/folder/fence-file.ts'
import { lockDataFolder } from '../../store/folder/folder-lock.ts'
import { readDataIdentity } from '../../store/log/data-identity.ts'
import { fencedMessage } from './removal-action.ts'
import { knownSeeds, seedsPath } from './known-seeds.ts'
import { hasNoData } from './set-aside.ts'
import type { StartCheckReport } from './check-report.ts'
import { errorCode, errorMessage } from '../../lib/error-code.ts'

/**
 * Checks the log file and its folder. It tries no write, because a check must not leave a log file
 * behind.
 */
export function checkLogFile(
  { logFile: { path } }: ControllerConfig,
  report: StartCheckReport,
): void {
  if (path === null) return
  const subject = `logFile.path: ${path} cannot be written: `
  report.attempt(subject, 'name a file in a folder that this user can write', () => {
    accessSync(dirname(path), constants.W_OK | constants.X_OK)
    const there = lstatSync(path, { throwIfNoEntry: false })
    if (there !== undefined && !there.isFile()) throw new Error('not a regular file')
    if (there !== undefined) accessSync(path, constants.W_OK)
  })
}

export async function checkDataFolder(
  config: ControllerConfig,
  report: StartCheckReport,
  isRunning: boolean,
): Promise<void> {
  const folder = config.data
  const status = report.attempt(
    `data: ${folder}: `,
    'give this user access to the parent folder',
    () => statSync(folder, { throwIfNoEntry: false }),
  )
  if (status === null) return
  const isLost = status === undefined || (status.isDirectory() && hasNoData(folder))
  if (isLost && knownSeeds(config).length > 0) {
    checkParent(folder, report)
    return
  }
  if (isLost) {
    report.faults.push(
      `data: ${folder} ${status === undefined ? 'does not exist' : 'is empty'}; name the data folder of this controller. If its disk is lost, set cluster.seeds to mesh addresses of other controllers: they admit it with an empty one and fill it. Neither cluster.seeds nor ${seedsPath(config)} names one`,
    )
    return
  }
  if (!status.isDirectory()) {
    report.faults.push(`data: ${folder} is not a folder; name the data folder of this controller`)
    return
  }
  if (canWrite(folder, report)) checkSpace(config, report)
  checkOwner(config, report)
  checkFence(config, report)
  if (!isRunning) await checkUnused(config, report)
}

/**
 * Checks the parent of the data folder. The data folder itself is created only after the peers have
 * re-admitted this controller.
 */
function checkParent(folder: string, report: StartCheckReport): void {
  const parent = dirname(folder)
  const probe = report.attempt(
    `data: ${parent}: `,
    'create the folder, writable for this user',
    () => {
      accessSync(parent, constants.W_OK)
      return true
    },
  )
  if (probe === null) return
  report.warnings.push(`data: ${folder} is empty; a start requests re-admission from the seeds`)
}

/**
 * Checks that no process uses the data folder. It tries the lock only if the folder contains a lock
 * file, because locking would create one in a new folder.
 */
async function checkUnused({ data }: ControllerConfig, report: StartCheckReport): Promise<void> {
  if (!existsSync(join(data, 'lock'))) return
  try {
    const lock = await lockDataFolder(data)
    await lock.release()
  } catch (error) {
    report.faults.push(`data: ${errorMessage(error)}`)
  }
}

/**
 * Checks that the data folder belongs to this controller: with a folder copied from another
 * controller, this controller would vote a second time in the other's name.
 */
function checkOwner(config: ControllerConfig, report: StartCheckReport): void {
  let owner: string
  try {
    owner = readDataIdentity(config.data).nodeId
  } catch (error) {
    report.faults.push(`data: ${errorMessage(error)}`)
    return
  }
  if (owner === config.id) return
  report.faults.push(
    `data: ${config.data} belongs to controller ${owner}, but id is ${config.id}; name the data folder of ${config.id}`,
  )
}

/**
 * Checks that the data folder has no FENCE file. The file says that the cluster continues in a
 * newer generation, so members of the older one would form a second cluster.
 */
function checkFence({ id, data }: ControllerConfig, report: StartCheckReport): void {
  const fence = report.attempt('data: ', 'make it readable for this user', () => readFence(data))
  if (fence !== null) report.faults.push(`data: ${data}: ${fencedMessage(id, fence)}`)
}

/**
 * Whether files can be written. It writes and syncs a small file, because permissions do not reveal
 * a read-only or full disk.
 */
function canWrite(folder: string, report: StartCheckReport): boolean {
  const probe = join(folder, `.probe-${process.pid}`)
  try {
    const file = openSync(probe, 'wx', 0o600)
    try {
      writeSync(file, Buffer.alloc(4096))
      fsyncSync(file)
    } finally {
      closeSync(file)
      rmSync(probe, { force: true })
    }
    return true
  } catch (error) {
    report.faults.push(`data: ${folder} ${writeFaultOf(error)}`)
    return false
  }
}

function writeFaultOf(error: unknown): string {
  switch (errorCode(error)) {
    case 'EACCES':
    case 'EPERM':
      return 'is not writable for this user; change its owner to the user that runs the controller'
    case 'EROFS':
      return 'is on a read-only file system; mount it writable'
    case 'ENOSPC':
    case 'EDQUOT':
      return 'has no space left; free disk space'
    default:
      return `cannot be written (${errorMessage(error)}); check its file system`
  }
}

function checkSpace(config: ControllerConfig, report: StartCheckReport): void {
  const { bavail, bsize } = statfsSync(config.data)
  const free = bavail * bsize
  if (free < config.log.lowSpaceBytes) {
    report.faults.push(
      `data: ${config.data} has ${free} bytes left, less than log.lowSpaceBytes (${config.log.lowSpaceBytes}); free disk space`,
    )
  }
}
