import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach } from 'vitest'
import type { DataIdentity } from '../../../src/store/log/data-identity.ts'
import { createDataFolder } from '../../../src/store/folder/create-data-folder.ts'
import type { Entry } from '../../../src/raft/types.ts'

const made: string[] = []

afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A temporary folder that is removed after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'flotilla-store-'))
  made.push(folder)
  return folder
}

export const identity: DataIdentity = {
  nodeId: 'ctrl1',
  storeId: Uint8Array.from(Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex')),
  clusterId: 'cluster-a',
  generation: 1,
}

/** Small files, and no reserve of free space, because tests share the disk of the machine. */
export const smallLog = { segmentBytes: 16 * 1024, bufferBytes: 4096, freeBytesMin: 0 }

/** @returns a formed data folder. */
export function formedFolder(entries: readonly Entry[] = []): string {
  const dir = `${temporaryFolder()}/data`
  createDataFolder(dir, { ...identity, entries }, smallLog)
  return dir
}
