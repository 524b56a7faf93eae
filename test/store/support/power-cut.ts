import { nodeFileSystem, type FileSystem } from '../../../src/store/file-system.ts'

export interface WatchedFileSystem extends FileSystem {
  /** Called before each call that changes the disk; if it throws, the call does not run. */
  onChange: (call: string, path: string) => void
  readonly counts: { syncs: number; writes: number }
}

/** The real file system with a hook before every call that changes the disk. */
export function watchedFileSystem(): WatchedFileSystem {
  const watched: WatchedFileSystem = {
    ...nodeFileSystem,
    onChange: () => {},
    counts: { syncs: 0, writes: 0 },
    open: (path, isNew) => {
      if (isNew) watched.onChange('open', path)
      return nodeFileSystem.open(path, isNew)
    },
    write: (fd, path, bytes, position) => {
      watched.onChange('write', path)
      watched.counts.writes += 1
      nodeFileSystem.write(fd, path, bytes, position)
    },
    sync: (fd, path) => {
      watched.onChange('sync', path)
      watched.counts.syncs += 1
      nodeFileSystem.sync(fd, path)
    },
    makeFolder: (path) => {
      watched.onChange('makeFolder', path)
      nodeFileSystem.makeFolder(path)
    },
    rename: (from, to) => {
      watched.onChange('rename', from)
      nodeFileSystem.rename(from, to)
    },
    remove: (path) => {
      watched.onChange('remove', path)
      nodeFileSystem.remove(path)
    },
    syncFolder: (folder) => {
      watched.onChange('syncFolder', folder)
      nodeFileSystem.syncFolder(folder)
    },
  }
  return watched
}

/** A file system without syncs, for opening many copies that need not survive a power cut. */
export const fastFileSystem: FileSystem = {
  ...nodeFileSystem,
  sync: () => {},
  syncFolder: () => {},
}
