/**
 * Checks the free space for backups.
 * @param found result of `statfs` for the file system of the backup folder.
 * @throws when fewer bytes are free than `log.lowSpaceBytes`.
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
