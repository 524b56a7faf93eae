import { nodeFileSystem, replaceFile, type FileSystem } from '../file-system.ts'

const FENCE_NAME = 'FENCE'
const FILE_BYTES_MAX = 4096

/** Records that the cluster continues without this data folder. */
export interface Fence {
  /** Generation of the cluster, later than that of the folder. */
  readonly generation: number
  /** Controller that refused this one. */
  readonly by: string
}

/**
 * Writes the file `FENCE` of a data folder when a member of a newer generation has refused it. The
 * file must survive a restart. Otherwise members of the older generation that cannot reach the
 * newer one could form their own cluster.
 */
export function writeFence(dir: string, fence: Fence, files: FileSystem = nodeFileSystem): void {
  replaceFile(files, dir, FENCE_NAME, `${JSON.stringify(fence)}\n`)
}

/**
 * @returns null when the folder has no fence. An unreadable fence counts as written by an unknown
 * controller.
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
