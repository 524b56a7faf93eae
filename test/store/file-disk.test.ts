import { cpSync } from 'node:fs'
import { openLog } from '../../src/store/log/open-log.ts'
import { diskSuite, type OpenedDisk } from './disk-suite.ts'
import { formedFolder, smallLog, temporaryFolder } from './support/folders.ts'

/**
 * The harness simulates a crash: it copies the folder and opens the copy, while the first log is
 * never closed.
 */
function harness(dir: string): OpenedDisk {
  const { disk, restored } = openLog(dir, smallLog)
  return {
    disk,
    restored,
    settle: async () => disk.flush(),
    restart: async () => {
      await disk.close()
      return harness(dir)
    },
    crash: async () => {
      const copy = `${temporaryFolder()}/data`
      cpSync(dir, copy, { recursive: true })
      await disk.close()
      return harness(copy)
    },
  }
}

diskSuite('file disk', async (entries) => harness(formedFolder(entries)))
