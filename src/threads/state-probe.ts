import { requirePresent } from '../lib/assert.ts'
import { LevelStateStore } from '../store/state/level-state-store.ts'

// Program that opens and reads the whole state of the data folder DIR, and changes no record:
// `node state-probe DIR`. It runs in a separate process, because LevelDB checks some invariants by
// assertions, which abort the process.

const dir = requirePresent(process.argv[2], 'the path of a data folder')
// The input ends with the parent process, so that no probe keeps the state locked after it.
process.stdin.once('close', () => process.exit(1)).resume()
const store = await LevelStateStore.open(dir)
const records = store.records()
while ((await records.next()).done !== true);
await store.close()
process.exit(0)
