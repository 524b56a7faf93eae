/** Files that a controller writes of all that it stores, when it is asked to. */
export interface DatabaseSnapshots {
  /**
   * Writes the state as it stands to a new file, and resolves once that is durable. It goes on to
   * its end even when nobody waits for it any more.
   * @param path where to, with placeholders; null for a name that tells the time.
   * @returns the path of the file.
   * @throws {Problem} COULD_NOT_VALIDATE on `path`; RATE_LIMITED while another one is written and
   * soon after it; INSUFFICIENT_STORAGE; the code of whatever makes the state one not to be
   * answered from.
   */
  take(path: string | null): Promise<string>
}
