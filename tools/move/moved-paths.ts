import { posix } from 'node:path'

/** A file or folder and its new place, both from the root of the project. */
export interface Move {
  readonly from: string
  readonly to: string
}

/** Folders whose files may be moved; every other file is only kept right. */
export const movableFolders: readonly string[] = ['src', 'test', 'bench', 'tools', 'proto']

/** The new place of each path: the move of the longest FROM decides. */
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

  /** @returns the one tracked file whose path ends in these segments, if there is exactly one. */
  onlyFileNamed(ending: string): string | undefined {
    const named = this.#byName.get(posix.basename(ending)) ?? []
    const found = named.filter((file) => file === ending || file.endsWith(`/${ending}`))
    return found.length === 1 ? found[0] : undefined
  }

  /**
   * @returns the new form of a path that `file` gives relative to its own folder; undefined when it
   * stays as it is, or leads to no file or folder of the project.
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
