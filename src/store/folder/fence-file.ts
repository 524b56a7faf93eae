import { nodeFileSystem, replaceFile, type FileSystem } from '../file-system.ts'

const FENCE_NAME = 'FENCE'
const FILE_BYTES_MAX = 4096

/**
 * The content of the file `FENCE`. The file says that the cluster continues without this data
 * folder, because an operator recovered the cluster from another folder.
 */
export interface GenerationFence {
  /** Generation of the cluster; it is later than the generation of the folder. */
  readonly generation: number
  /** Id of the controller that rejected this folder's controller. */
  readonly by: string
}

/**
 * Writes the file `FENCE` in a data folder after a member of a newer generation has rejected the
 * folder's controller. The file must survive a restart. Otherwise, members of the older generation
 * that cannot reach the newer one could form a second cluster.
 */
export function writeFence(
  dir: string,
  fence: GenerationFence,
  files: FileSystem = nodeFileSystem,
): void {
  replaceFile(files, dir, FENCE_NAME, `${JSON.stringify(fence)}\n`)
}

/**
 * Reads the file `FENCE` of a data folder.
 * @returns null when the folder has none. A malformed file counts as written by an unknown
 * controller of the highest generation.
 */
export function readFence(dir: string, files: FileSystem = nodeFileSystem): GenerationFence | null {
  const path = `${dir}/${FENCE_NAME}`
  if (!files.exists(path)) return null
  const unknown = { generation: Number.MAX_SAFE_INTEGER, by: 'a member that is not known' }
  const bytes = files.read(path)
  if (bytes.length > FILE_BYTES_MAX) return unknown
  try {
    const found = JSON.parse(Buffer.from(bytes).toString()) as Partial<GenerationFence> | null
    const { generation, by } = found ?? {}
    if (!Number.isSafeInteger(generation) || typeof by !== 'string') return unknown
    return { generation: Number(generation), by: by.slice(0, 256) }
  } catch {
    return unknown
  }
}
