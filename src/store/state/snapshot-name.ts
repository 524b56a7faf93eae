import { fieldProblem } from '../../lib/problems.ts'
import type { Index } from '../../raft/types.ts'
import { STATE_NAME } from './level-state-store.ts'

/** Inside a data folder. */
export const SNAPSHOTS_NAME = 'snapshots'
/** The path where none is said. */
export const DEFAULT_PATH = '__DB_DIR__/__DB_FILE__-__DATE__-__TIME__'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
const UNNAMED = new RegExp(`^${STATE_NAME}-[0-9]{8}-[0-9]{6}$`)
/** Begins with what no name may begin with. */
const PARTIAL = /^\..*\.partial$/

export interface NameFacts {
  /** Folder of the snapshots. */
  readonly folder: string
  /** UTC ms. */
  readonly timeMs: number
  readonly index: Index
}

/**
 * The name of the file that a path means, which may only lie directly in the folder of the
 * snapshots.
 * @throws {Problem} COULD_NOT_VALIDATE on `path`.
 */
export function nameOf(path: string, { folder, timeMs, index }: NameFacts): string {
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

/** Whether it is a name as they have it whose path is not said. */
export function isUnnamed(name: string): boolean {
  return UNNAMED.test(name)
}

/** Whether it may be counted as a snapshot. */
export function isName(name: string): boolean {
  return NAME.test(name)
}

export function partialNameOf(name: string): string {
  return `.${name}.partial`
}

export function isPartial(name: string): boolean {
  return PARTIAL.test(name)
}
