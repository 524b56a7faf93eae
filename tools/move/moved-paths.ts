import { posix } from 'node:path'

/** The old and the new path of a file or folder, both relative to the root of the project. */
export interface Move {
  readonly from: string
  readonly to: string
}

/** Folders whose files may be moved. In all other files, only references are updated. */
export const movableFolders: readonly string[] = ['src', 'test', 'bench', 'tools', 'proto']

/**
 * The new path for each old path. If several moves apply, the one with the longest old path counts.
 */
export class MovedPaths {
  /** Each tracked file that moves, with its new path. */
  readonly files: ReadonlyMap<string, string>
  readonly #moves: readonly Move[]
  readonly #folders = new Set<string>([''])
  readonly #tracked: ReadonlySet<string>
  readonly #byName = new Map<string, string[]>()

  constructor(moves: readonly Move[], tracked: readonly string[]) {
    this.#moves = moves.toSorted((a, b) => b.from.length - a.from.length)
    this.#tracked = new Set(tracked)
    const files = new Map<string, string>()
    for (const file of tracked) {
      const after = this.after(file)
      if (after !== undefined) files.set(file, after)
      const name = posix.basename(file)
      this.#byName.set(name, [...(this.#byName.get(name) ?? []), file])
      for (let at = posix.dirname(file); at !== '.'; at = posix.dirname(at)) this.#folders.add(at)
    }
    this.files = files
  }

  /** @returns the new path of a file or folder; undefined when it stays. */
  after(path: string): string | undefined {
    const move = this.#moves.find(({ from }) => path === from || path.startsWith(`${from}/`))
    return move === undefined ? undefined : move.to + path.slice(move.from.length)
  }

  isThere(path: string): boolean {
    return this.#tracked.has(path) || this.#folders.has(path)
  }

  /** @returns the tracked file whose path ends in these segments, if there is exactly one. */
  onlyFileNamed(ending: string): string | undefined {
    const named = this.#byName.get(posix.basename(ending)) ?? []
    const found = named.filter((file) => file === ending || file.endsWith(`/${ending}`))
    return found.length === 1 ? found[0] : undefined
  }

  /**
   * @returns the new form of a path in `file` that is relative to the folder of `file`; undefined
   * if the path does not change, or if no file or folder of the project has it.
   */
  relativeAfter(file: string, written: string): string | undefined {
    const slash = /.\/$/.test(written) ? '/' : ''
    const joined = posix.join(posix.dirname(file), written).replace(/\/$/, '')
    const target = joined === '.' ? '' : joined
    const newFile = this.after(file)
    const newTarget = this.after(target)
    if ((newFile ?? newTarget) === undefined || !this.isThere(target)) return undefined
    const path = posix.relative(posix.dirname(newFile ?? file), newTarget ?? target)
    const isBare = path.startsWith('.') || !written.startsWith('.')
    const after = (path === '' ? '.' : isBare ? path : `./${path}`) + slash
    return after === written ? undefined : after
  }
}
