// Runs as a separate process that a test kills: it writes batches, each of ten records with the
// batch number, and prints the number once the batch is durable.
import { LevelStateStore } from '../../../src/store/state/level-state-store.ts'

const store = await LevelStateStore.open(process.argv[2] ?? '', { freeBytesMin: 0 })
for (let number = (store.mark()?.position.index ?? 0) + 1; ; number += 1) {
  const records = Array.from({ length: 10 }, (_, key) => ({ key: `${key}`, value: `${number}` }))
  const position = { term: 1, index: number }
  const rest = { timeMs: 0, configuration: '', featureLevel: 1, digest: '', entitiesDigest: '' }
  await store.write(records, { position, ...rest })
  process.stdout.write(`${number}\n`)
}
