import { seededRandom } from '../../src/lib/random.ts'
import type { RestoredLog } from '../../src/raft/types.ts'
import type { FileDisk } from '../../src/store/file-disk.ts'
import { formDataFolder } from '../../src/store/form-data-folder.ts'
import { openLog } from '../../src/store/open-log.ts'
import { FaultyMemoryFiles } from '../store/support/faulty-memory-files.ts'

const dir = '/data'
const small = { segmentBytes: 16 * 1024, bufferBytes: 4096, freeBytesMin: 0 }
const identity = {
  nodeId: 'ctrl1',
  storeId: new Uint8Array(16).fill(7),
  clusterId: 'cluster-a',
  generation: 1,
}
/** What a cut takes is drawn anew so many times at each call. */
const DRAWS = 40

/**
 * The power goes at each file call of `work` in turn; `check` is given what a start finds after it.
 * @throws {Error} I16 when a start finds nothing that it can go on from.
 */
export function powerCuts(
  work: { readonly before: (disk: FileDisk) => void; readonly during: (disk: FileDisk) => void },
  check: (found: RestoredLog) => void,
): void {
  let isCut = true
  for (let calls = 1; isCut; calls += 1) {
    for (let draw = 1; draw <= DRAWS; draw += 1) {
      const files = new FaultyMemoryFiles()
      formDataFolder(dir, { ...identity, entries: [] }, { ...small, files })
      const { disk } = openLog(dir, { ...small, files })
      work.before(disk)
      disk.flush()
      files.callsLeft = calls
      work.during(disk)
      disk.flush()
      isCut = disk.failure !== null
      check(startAfter(files.afterPowerCut(seededRandom(calls * DRAWS + draw)), calls))
    }
  }
}

function startAfter(files: FaultyMemoryFiles, calls: number): RestoredLog {
  try {
    return openLog(dir, { ...small, files }).restored
  } catch (error) {
    throw new Error(`I16: no start after a power cut at call ${calls}: ${String(error)}`, {
      cause: error,
    })
  }
}
