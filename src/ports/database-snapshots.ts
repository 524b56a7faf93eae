/** Backups of everything that a controller stores, written to files on request. */
export interface DatabaseSnapshots {
  /**
   * Writes the current state to a new file, and resolves once the file is durable. The file is
   * completed even if the caller no longer waits.
   * @param path destination, with placeholders; null for a name that contains the time.
   * @returns the path of the file.
   * @throws {Problem} COULD_NOT_VALIDATE on `path`; RATE_LIMITED while another snapshot is written
   * and soon after it; INSUFFICIENT_STORAGE; the code of the condition under which this controller
   * must not answer from its state.
   */
  take(path: string | null): Promise<string>
}
