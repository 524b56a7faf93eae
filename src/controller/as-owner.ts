import { statSync } from 'node:fs'

/**
 * Runs a step as the user that a folder or file belongs to, when root runs this program: what
 * root writes with mode 0600 could not be read by the controller. Any other user runs it as is.
 */
export async function asOwnerOf<T>(path: string, step: () => T | Promise<T>): Promise<T> {
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
