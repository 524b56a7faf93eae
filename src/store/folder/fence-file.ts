import { nodeFileSystem, replaceFile, type FileSystem } from '../file-system.ts'

export const FENCE_NAME = 'FENCE'
const FILE_BYTES_MAX = 4096

/** That the cluster goes on without this data folder. */
export interface Fence {
  /** Generation of the cluster, which is past that of the folder. */
  readonly generation: number
  /** The controller that said so. */
  readonly by: string
}

/**
 * `FENCE` of a data folder: a member of a newer generation has refused it. A restart must not
 * forget that, since members of the older generation would otherwise be a cluster of their own for
 * as long as they do not reach the newer one.
 */
export function writeFence(dir: string, fence: Fence, files: FileSystem = nodeFileSystem): void {
  replaceFile(files, dir, FENCE_NAME, `${JSON.stringify(fence)}\n`)
}

/**
 * @returns null when there is none. One that cannot be read fences as well: by whom is not known
 * then.
 */
export function readFence(dir: string, files: FileSystem = nodeFileSystem): Fence | null {
  const path = `${dir}/${FENCE_NAME}`
  if (!files.exists(path)) return null
  const unknown = { generation: Number.MAX_SAFE_INTEGER, by: 'a member that is not known' }
  const bytes = files.read(path)
  if (bytes.length > FILE_BYTES_MAX) return unknown
  try {
    const found = JSON.parse(Buffer.from(bytes).toString()) as Partial<Fence> | null
    const { generation, by } = found ?? {}
    if (!Number.isSafeInteger(generation) || typeof by !== 'string') return unknown
    return { generation: Number(generation), by: by.slice(0, 256) }
  } catch {
    return unknown
  }
}
