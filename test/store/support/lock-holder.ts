// Runs as a separate process: locks a data folder until the process is killed.
import { lockDataFolder } from '../../../src/store/folder/folder-lock.ts'

await lockDataFolder(process.argv[2] ?? '')
process.stdout.write('held\n')
setInterval(() => {}, 1000)
