/** Backups of everything that a controller stores, written to files on request. */
export interface DatabaseSnapshots {
  /**
   * Writes the current state to a new file, and resolves once the file is durable. The file is
   * completed even if the caller no longer waits.
   * @param path destination, with placeholders; null for a name that contains the time.
   * @returns the path of the file.
   * @throws {Problem} COULD_NOT_VALIDATE on `path`; RATE_LIMITED during and shortly after another
   * snapshot; INSUFFICIENT_STORAGE; or, if this controller must not answer from its state, the code
   * of the reason.
   */
  take(path: string | null): Promise<string>
}
