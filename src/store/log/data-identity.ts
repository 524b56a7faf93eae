import { canonicalJson } from '../../lib/text/canonical-json.ts'
import { corruptError, unsupportedFormatError, StoreError } from '../errors.ts'
import { nodeFileSystem, replaceFile, type FileSystem } from '../file-system.ts'
import { NODE_ID_BYTES_MAX } from './meta-slots.ts'
import { STORE_ID_BYTES } from './wal-format.ts'
import { jsonChecksum, parseJsonObject } from '../json-file.ts'

/**
 * Identity of a data folder. `storeId` is 16 random bytes, different for each folder that is
 * created.
 */
export interface DataIdentity {
  readonly nodeId: string
  readonly storeId: Uint8Array
  readonly clusterId: string
  /**
   * 1 for a new cluster. Each recovery from one data folder (`cluster recover`), and each restore
   * that creates a cluster from a backup, raises the number by one.
   */
  readonly generation: number
}

export const IDENTITY_FILE_NAME = 'IDENTITY'
const IDENTITY_FORMAT = 1

/**
 * Encodes the identity as one line of JSON. `check` is a CRC-32 of the other members, which detects
 * accidental edits.
 */
function encodeIdentity(identity: DataIdentity): string {
  const { nodeId, clusterId, generation } = identity
  const storeId = Buffer.from(identity.storeId).toString('hex')
  const members = { format: IDENTITY_FORMAT, nodeId, storeId, clusterId, generation }
  const check = jsonChecksum(members)
  return `${canonicalJson({ ...members, check })}\n`
}

/**
 * Reads the identity of a data folder.
 * @throws {StoreError} MISSING, NEWER_FORMAT or CORRUPT.
 */
export function readDataIdentity(dir: string, files: FileSystem = nodeFileSystem): DataIdentity {
  const path = `${dir}/${IDENTITY_FILE_NAME}`
  if (!files.exists(dir)) {
    throw new StoreError(
      'MISSING',
      dir,
      `the data folder ${dir} does not exist: create a cluster (flotilla cluster init), join one (flotilla cluster join), or correct the path.`,
    )
  }
  if (!files.exists(path)) {
    throw new StoreError(
      'MISSING',
      path,
      `${dir} is not a data folder (no IDENTITY file): create a cluster (flotilla cluster init), join one (flotilla cluster join), or correct the path.`,
    )
  }
  const found = parseJsonObject(Buffer.from(files.read(path)).toString('utf8'))
  if (found === null) throw corruptError(path, 'it is not a JSON object')
  const { check, ...members } = found
  const format = members['format']
  if (typeof format === 'number' && format > IDENTITY_FORMAT) {
    throw unsupportedFormatError(path, format, IDENTITY_FORMAT)
  }
  const expected = jsonChecksum(members)
  const identity = identityOf(members)
  if (check !== expected || identity === null) {
    throw corruptError(path, 'its checksum does not match; it must not be edited by hand')
  }
  return identity
}

function identityOf(members: Record<string, unknown>): DataIdentity | null {
  const { nodeId, storeId, clusterId, generation } = members
  if (typeof nodeId !== 'string' || typeof clusterId !== 'string') return null
  if (typeof storeId !== 'string' || !/^[0-9a-f]{32}$/.test(storeId)) return null
  if (typeof generation !== 'number' || !Number.isSafeInteger(generation)) return null
  if (Buffer.byteLength(nodeId) > NODE_ID_BYTES_MAX || storeId.length !== STORE_ID_BYTES * 2) {
    return null
  }
  return { nodeId, storeId: Uint8Array.from(Buffer.from(storeId, 'hex')), clusterId, generation }
}

/**
 * Writes the file IDENTITY durably and atomically, when a folder is created or an operator recovers
 * the cluster. The caller must hold the lock of an existing folder.
 */
export function writeDataIdentity(
  dir: string,
  identity: DataIdentity,
  files: FileSystem = nodeFileSystem,
): void {
  replaceFile(files, dir, IDENTITY_FILE_NAME, encodeIdentity(identity))
}
