import { nodeFileSystem, type FileSystem } from '../file-system.ts'

const FILE_NAME = 'OPENING'

/**
 * The file `OPENING` of a data folder exists while a process opens the state. If a start finds the
 * file, an earlier process ended during that time. The file need not survive a power failure.
 */
export class OpeningFile {
  readonly #path: string
  readonly #files: FileSystem

  constructor(dataFolder: string, files: FileSystem = nodeFileSystem) {
    this.#path = `${dataFolder}/${FILE_NAME}`
    this.#files = files
  }

  isSet(): boolean {
    return this.#files.exists(this.#path)
  }

  /** @throws {StoreError} */
  set(): void {
    if (!this.isSet()) this.#files.close(this.#files.open(this.#path, true))
  }

  /** @throws {StoreError} */
  clear(): void {
    this.#files.remove(this.#path)
  }
}
