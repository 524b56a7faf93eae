import { mkdir, readdir, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'

import { writeNewBackup } from '../../backup/backup-files.ts'
import { syncFolder } from '../../pki/secret-file.ts'
import { requireFreeSpace } from '../free-space.ts'

const PARTIAL = /^\..*\.partial$/

/** The values in the file name of a backup. */
interface NamedBackup {
  readonly name: string
  /** UTC ms; precise to one second. */
  readonly takenAtMs: number
}

/** The scheduled backups of one controller, in a folder that may contain other files. */
export class BackupFolder {
  readonly #folder: string
  readonly #own: RegExp
  readonly #prefix: string
  readonly #freeBytesMin: number

  /** @param options.freeBytesMin bytes that must stay free on the file system. */
  constructor(options: {
    readonly folder: string
    readonly controllerId: string
    readonly freeBytesMin: number
  }) {
    this.#folder = options.folder
    this.#prefix = `flotilla-${options.controllerId}-`
    this.#own = new RegExp(
      `^flotilla-${escaped(options.controllerId)}-(\\d{8}T\\d{6}Z)-\\d+\\.backup$`,
    )
    this.#freeBytesMin = options.freeBytesMin
  }

  get path(): string {
    return this.#folder
  }

  /**
   * The backups, newest first.
   * @throws the file system's error.
   */
  async list(): Promise<readonly NamedBackup[]> {
    const found = (await readdir(this.#folder)).flatMap((name): NamedBackup[] => {
      const time = this.#own.exec(name)?.[1]
      return time === undefined ? [] : [{ name, takenAtMs: msOf(time) }]
    })
    return found.sort((a, b) => b.takenAtMs - a.takenAtMs || (a.name < b.name ? 1 : -1))
  }

  /**
   * Writes a backup.
   * @returns the path of the backup.
   * @throws the file system's error or the error of `bytes`; the incomplete file is removed.
   */
  async write(
    { takenAtMs, index }: { readonly takenAtMs: number; readonly index: number },
    bytes: AsyncIterable<Uint8Array>,
  ): Promise<string> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    await this.#removePartial()
    await this.#requireSpace()
    const name = `${this.#prefix}${timeText(takenAtMs)}-${index}.backup`
    const path = join(this.#folder, name)
    await writeNewBackup(path, bytes, () => this.#requireSpace())
    return path
  }

  /**
   * Removes all but the `count` newest backups.
   * @throws the file system's error.
   */
  async keep(count: number): Promise<void> {
    const surplus = (await this.list()).slice(count)
    for (const { name } of surplus) await rm(join(this.#folder, name), { force: true })
    if (surplus.length > 0) syncFolder(this.#folder)
  }

  /** Removes incomplete files that killed processes have left. */
  async #removePartial(): Promise<void> {
    const names = await readdir(this.#folder)
    const left = names.filter((name) => PARTIAL.test(name) && name.startsWith(`.${this.#prefix}`))
    for (const name of left) await rm(join(this.#folder, name), { force: true })
  }

  async #requireSpace(): Promise<void> {
    requireFreeSpace(this.#folder, await statfs(this.#folder), this.#freeBytesMin)
  }
}

function escaped(text: string): string {
  return text.replaceAll(/[.\\^$*+?()[\]{}|-]/g, '\\$&')
}

/** The time in a form whose alphabetical order is the order of time. */
function timeText(ms: number): string {
  return new Date(ms).toISOString().replaceAll(/[-:]|\.\d+/g, '')
}

function msOf(text: string): number {
  const iso = text.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)$/, '$1-$2-$3:$4:$5')
  const ms = Date.parse(iso)
  return Number.isNaN(ms) ? 0 : ms
}
