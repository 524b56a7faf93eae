/**
 * Checks a folder that backups are written to.
 * @param found of its file system, by `statfs`.
 * @throws for less than what must stay free (`log.lowSpaceBytes`).
 */
export function requireFreeSpace(
  folder: string,
  { bavail, bsize }: { readonly bavail: number; readonly bsize: number },
  freeBytesMin: number,
): void {
  const bytes = bavail * bsize
  if (bytes >= freeBytesMin) return
  throw new Error(
    `${folder} has ${bytes} bytes left, ${freeBytesMin} must stay free (log.lowSpaceBytes); free space there, or name another folder`,
  )
}
