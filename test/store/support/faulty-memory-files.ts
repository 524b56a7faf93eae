import { basename, dirname } from 'node:path'
import type { Random } from '../../../src/lib/random.ts'
import type { FileSystem } from '../../../src/store/file-system.ts'
import { StoreError } from '../../../src/store/errors.ts'

const SECTOR_BYTES = 512

class MemoryFile {
  bytes = new Uint8Array(0)
  /** Content at the last sync. */
  synced = new Uint8Array(0)
  /** Range of the bytes that were written since the last sync. */
  dirtyFrom = Infinity
  dirtyTo = 0

  write(bytes: Uint8Array, position: number): void {
    const end = position + bytes.length
    if (end > this.bytes.length) this.bytes = grown(this.bytes, end)
    this.bytes.set(bytes, position)
    this.dirtyFrom = Math.min(this.dirtyFrom, position)
    this.dirtyTo = Math.max(this.dirtyTo, end)
  }

  sync(): void {
    if (this.synced.length < this.bytes.length) this.synced = grown(this.synced, this.bytes.length)
    if (this.dirtyTo === 0) return
    this.synced.set(this.bytes.subarray(this.dirtyFrom, this.dirtyTo), this.dirtyFrom)
    this.dirtyFrom = Infinity
    this.dirtyTo = 0
  }
}

function grown(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const longer = new Uint8Array(length)
  longer.set(bytes)
  return longer
}

/**
 * Names that one call removed and added. Such a change is atomic, as in the journal of a file
 * system.
 */
type Change = readonly (readonly [name: string, node: MemoryNode | null])[]

class MemoryFolder {
  readonly names = new Map<string, MemoryNode>()
  readonly synced = new Map<string, MemoryNode>()
  /** Changes since the last sync of the folder, in order. */
  changes: Change[] = []

  change(change: Change): void {
    applyChange(this.names, change)
    this.changes.push(change)
  }
}

type MemoryNode = MemoryFile | MemoryFolder

function applyChange(names: Map<string, MemoryNode>, change: Change): void {
  for (const [name, node] of change) {
    if (node === null) names.delete(name)
    else names.set(name, node)
  }
}

/** Thrown by the call during which the power cut occurs, and by all later calls with changes. */
export class PowerCut extends Error {
  override readonly name = 'PowerCut'
}

/**
 * Files in memory that lose in a power cut everything that a real disk may lose: any sectors of a
 * file written since its last sync, and any tail of a folder's name changes since the folder was
 * synced.
 */
export class FaultyMemoryFiles implements FileSystem {
  readonly #root: MemoryFolder
  readonly #open = new Map<number, MemoryFile>()
  #nextFd = 3
  /** Number of changing calls until the power cut; Infinity: never. */
  callsLeft = Infinity
  /** Share of the interrupted write that reaches the disk, 0..1. */
  tornShare = 0.5
  /** Free bytes of the disk; a write that needs more fails. */
  bytesLeft = Number.MAX_SAFE_INTEGER
  /** If true, the next sync of a file fails, and syncs nothing. */
  failsNextSync = false
  /** If true, reads fail, as on an unreadable medium. */
  isUnreadable = false
  /** Files that the device cannot read. */
  readonly unreadable = new Set<string>()

  constructor(root: MemoryFolder = new MemoryFolder()) {
    this.#root = root
  }

  /** A copy of the synced content of the disk. */
  copy(): FaultyMemoryFiles {
    return new FaultyMemoryFiles(copiedFolder(this.#root))
  }

  /** The files that a start after the power cut finds. */
  afterPowerCut(random: Random): FaultyMemoryFiles {
    const kept = new FaultyMemoryFiles(keptFolder(this.#root, random))
    for (const path of this.unreadable) kept.unreadable.add(path)
    return kept
  }

  /** Changes a file without a write call; null: removes it. */
  damage(path: string, bytes: Uint8Array<ArrayBuffer> | null): void {
    if (bytes === null) {
      this.remove(path)
      this.syncFolder(dirname(path))
      return
    }
    const file = this.#file(path)
    file.bytes = bytes
    file.synced = bytes.slice()
  }

  open(path: string, isNew: boolean): number {
    if (isNew) {
      this.#spend()
      if (this.exists(path)) throw new StoreError('IO', path, `${path} exists`)
      this.#folder(dirname(path)).change([[basename(path), new MemoryFile()]])
    }
    this.#nextFd += 1
    this.#open.set(this.#nextFd, this.#file(path))
    return this.#nextFd
  }

  write(fd: number, path: string, bytes: Uint8Array, position: number): void {
    // The interrupted write may be partly on disk.
    const share = this.callsLeft <= 1 ? this.tornShare : 1
    const part = bytes.subarray(0, Math.floor(bytes.length * share))
    const file = this.#opened(fd)
    const growthBytes = Math.max(0, position + part.length - file.bytes.length)
    if (growthBytes > this.bytesLeft) {
      throw new StoreError('NO_SPACE', path, `${path} does not fit on the disk.`)
    }
    this.bytesLeft -= growthBytes
    file.write(part, position)
    this.#spend()
  }

  sync(fd: number, path: string): void {
    this.#spend()
    if (this.failsNextSync) {
      this.failsNextSync = false
      throw new StoreError('IO', path, `${path} could not be synced.`)
    }
    this.#opened(fd).sync()
  }

  close(fd: number): void {
    this.#open.delete(fd)
  }

  read(path: string): Uint8Array<ArrayBuffer> {
    if (this.isUnreadable) throw new StoreError('IO', path, `${path} could not be read.`)
    if (this.unreadable.has(path)) throw new StoreError('IO', path, `cannot read ${path}: EIO.`)
    return this.#file(path).bytes.slice()
  }

  /** Paths of all files, sorted. */
  paths(folder = ''): string[] {
    return this.list(folder).flatMap((name) => {
      const path = `${folder}/${name}`
      return this.#find(path) instanceof MemoryFolder ? this.paths(path) : [path]
    })
  }

  list(folder: string): string[] {
    return [...this.#folder(folder).names.keys()].sort()
  }

  exists(path: string): boolean {
    return this.#find(path) !== undefined
  }

  makeFolder(path: string): void {
    this.#spend()
    this.#folder(dirname(path)).change([[basename(path), new MemoryFolder()]])
  }

  rename(from: string, to: string): void {
    this.#spend()
    const node = this.#find(from)
    if (node === undefined || dirname(from) !== dirname(to)) {
      throw new StoreError('MISSING', from, `${from} cannot be renamed to ${to}`)
    }
    const change: Change = [
      [basename(from), null],
      [basename(to), node],
    ]
    this.#folder(dirname(from)).change(change)
  }

  remove(path: string): void {
    this.#spend()
    if (this.exists(path)) this.#folder(dirname(path)).change([[basename(path), null]])
  }

  syncFolder(path: string): void {
    this.#spend()
    const folder = this.#folder(path)
    for (const change of folder.changes) applyChange(folder.synced, change)
    folder.changes = []
  }

  freeBytes(): number {
    return this.bytesLeft
  }

  #spend(): void {
    this.callsLeft -= 1
    if (this.callsLeft <= 0) throw new PowerCut('the power is gone')
  }

  #find(path: string): MemoryNode | undefined {
    let node: MemoryNode | undefined = this.#root
    for (const name of path.split('/').filter((part) => part !== '')) {
      node = node instanceof MemoryFolder ? node.names.get(name) : undefined
    }
    return node
  }

  #folder(path: string): MemoryFolder {
    const node = this.#find(path)
    if (node instanceof MemoryFolder) return node
    throw new StoreError('MISSING', path, `${path} is no folder`)
  }

  #file(path: string): MemoryFile {
    const node = this.#find(path)
    if (node instanceof MemoryFile) return node
    throw new StoreError('MISSING', path, `${path} is no file`)
  }

  #opened(fd: number): MemoryFile {
    const file = this.#open.get(fd)
    if (file === undefined) throw new Error(`descriptor ${fd} is not open`)
    return file
  }
}

function keptFolder(folder: MemoryFolder, random: Random): MemoryFolder {
  const names = new Map(folder.synced)
  for (const change of folder.changes) {
    if (random.next() < 0.3) break
    applyChange(names, change)
  }
  const kept = new MemoryFolder()
  for (const [name, node] of names) {
    const keptNode =
      node instanceof MemoryFolder ? keptFolder(node, random) : keptFile(node, random)
    kept.names.set(name, keptNode)
    kept.synced.set(name, keptNode)
  }
  return kept
}

function keptFile({ bytes, synced }: MemoryFile, random: Random): MemoryFile {
  const kept = new MemoryFile()
  // The increase of a file's size may be lost; bytes beyond the synced ones may still be zeros.
  const mixed = new Uint8Array(random.next() < 0.5 ? bytes.length : synced.length)
  const lossRate = [0, 0.1, 0.5, 1][random.integer(0, 3)] ?? 0
  for (let at = 0; at < mixed.length; at += SECTOR_BYTES) {
    const from = random.next() < lossRate ? synced : bytes
    mixed.set(from.subarray(at, Math.min(at + SECTOR_BYTES, mixed.length)), at)
  }
  kept.bytes = mixed
  kept.synced = mixed.slice()
  return kept
}

function copiedFolder(folder: MemoryFolder): MemoryFolder {
  const copy = new MemoryFolder()
  for (const [name, node] of folder.synced) {
    const copied = node instanceof MemoryFolder ? copiedFolder(node) : copiedFile(node)
    copy.names.set(name, copied)
    copy.synced.set(name, copied)
  }
  return copy
}

function copiedFile({ synced }: MemoryFile): MemoryFile {
  const copy = new MemoryFile()
  copy.bytes = synced.slice()
  copy.synced = synced.slice()
  return copy
}
