import { fieldProblem } from '../../lib/problems.ts'
import type { Index } from '../../raft/types.ts'
import { STATE_NAME } from './level-state-store.ts'

/** Inside a data folder. */
export const SNAPSHOTS_NAME = 'snapshots'
/** Default path of a snapshot. */
export const DEFAULT_PATH = '__DB_DIR__/__DB_FILE__-__DATE__-__TIME__'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const UNNAMED = new RegExp(`^${STATE_NAME}-[0-9]{8}-[0-9]{6}$`)
/** Partial files begin with a dot, which no snapshot name may. */
const PARTIAL = /^\..*\.partial$/

export interface SnapshotNameValues {
  /** Folder of the snapshots. */
  readonly folder: string
  /** UTC ms. */
  readonly timeMs: number
  readonly index: Index
}

/**
 * File name for a requested path, which must lie directly in the snapshot folder.
 * @throws {Problem} COULD_NOT_VALIDATE on `path`.
 */
export function snapshotFileName(
  path: string,
  { folder, timeMs, index }: SnapshotNameValues,
): string {
  const [date = '', time = ''] = new Date(timeMs).toISOString().replace(/[-:]/g, '').split('T')
  const filled = path
    .replaceAll('__DB_DIR__', () => folder)
    .replaceAll('__DB_FILE__', STATE_NAME)
    .replaceAll('__DATE__', date)
    .replaceAll('__TIME__', time.slice(0, 6))
    .replaceAll('__RAFT_INDEX__', String(index))
  const name = filled.startsWith(`${folder}/`) ? filled.slice(folder.length + 1) : filled
  if (NAME.test(name)) return name
  throw fieldProblem(
    'path',
    'must name a file directly in __DB_DIR__: 1 to 128 letters, digits, dots, hyphens and underscores, a letter or digit first',
    path,
  )
}

/** Whether it is an automatic name, used when no path is given. */
export function isAutomaticName(name: string): boolean {
  return UNNAMED.test(name)
}

/** Whether it is a valid snapshot name. */
export function isSnapshotName(name: string): boolean {
  return NAME.test(name)
}

export function partialFileName(name: string): string {
  return `.${name}.partial`
}

export function isPartial(name: string): boolean {
  return PARTIAL.test(name)
}
