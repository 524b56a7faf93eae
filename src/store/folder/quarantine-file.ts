import { nodeFileSystem, replaceFile, type FileSystem } from '../file-system.ts'

const FILE_NAME = 'QUARANTINE'

/**
 * The file `QUARANTINE` of a data folder. While it exists, the state in the same folder is known to
 * be wrong. Programs check only whether it exists; its text is for operators.
 */
export class QuarantineFile {
  readonly #folder: string
  readonly #files: FileSystem

  constructor(dataFolder: string, files: FileSystem = nodeFileSystem) {
    this.#folder = dataFolder
    this.#files = files
  }

  isSet(): boolean {
    return this.#files.exists(`${this.#folder}/${FILE_NAME}`)
  }

  /**
   * Writes the file, which is durable when the call returns.
   * @throws {StoreError}
   */
  set(reason: string): void {
    replaceFile(this.#files, this.#folder, FILE_NAME, `${reason}\n`)
  }

  /**
   * Removes the file, durably.
   * @throws {StoreError}
   */
  clear(): void {
    this.#files.remove(`${this.#folder}/${FILE_NAME}`)
    this.#files.syncFolder(this.#folder)
  }
}
