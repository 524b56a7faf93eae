import { statSync } from 'node:fs'

/**
 * If root runs this program, runs a step as the owner of a file or folder: the controller could not
 * read files that root creates with mode 0600. For other users, and if the file or folder does not
 * exist, runs the step unchanged.
 */
export async function runAsFileOwner<T>(path: string, step: () => T | Promise<T>): Promise<T> {
  const owner = statSync(path, { throwIfNoEntry: false })
  const { geteuid, getegid, seteuid, setegid } = process
  const isRoot = geteuid?.() === 0 && getegid !== undefined
  if (!isRoot || seteuid === undefined || setegid === undefined) return await step()
  if (owner === undefined || owner.uid === 0) return await step()
  const group = getegid()
  setegid(owner.gid)
  seteuid(owner.uid)
  try {
    return await step()
  } finally {
    seteuid(0)
    setegid(group)
  }
}
