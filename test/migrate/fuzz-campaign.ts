import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parseArgs } from 'node:util'

import { clientCertificate, newCa } from '../support/authorities.ts'
import { writeBolt } from '../support/bolt-writer.ts'
import { runMutations } from './mutated-files.ts'
import { databaseOf, sampleStores } from './sample-network.ts'

// Migrates many damaged databases: `node test/migrate/fuzz-campaign.ts --files 100000 [--seed 1]
// [--from 0] [--data FOLDER]`. FOLDER contains databases of OpenZiti controllers (*.db, *.db.gz),
// which are damaged in addition to those that the tests create.

const BATCH = 1000
const { values } = parseArgs({
  options: {
    files: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
    from: { type: 'string', default: '0' },
    data: { type: 'string' },
  },
})
const nowMs = Date.now()
const [network, partner] = [await newCa('network', nowMs), await newCa('partner', nowMs)]
const stores = sampleStores({
  leafPem: await clientCertificate(network, 'edge-1', nowMs),
  caPem: partner.certificatePem,
  partnerPem: await clientCertificate(partner, 'partner 1', nowMs),
})
const originals = [48, 41].map((version) => writeBolt(databaseOf(stores, version)))
if (values.data !== undefined) originals.push(...databasesIn(values.data))

const total = { files: 0, refused: 0, converted: 0, slowestMs: 0 }
const [files, seed, first] = [Number(values.files), Number(values.seed), Number(values.from)]
for (let from = first; from < first + files; from += BATCH) {
  const figures = runMutations(originals, {
    count: Math.min(BATCH, first + files - from),
    seed,
    from,
  })
  total.files += figures.files
  total.refused += figures.refused
  total.converted += figures.converted
  total.slowestMs = Math.max(total.slowestMs, figures.slowestMs)
  if (total.files % (10 * BATCH) === 0) console.log(JSON.stringify(total))
}
console.log(JSON.stringify({ originals: originals.length, ...total }))

function databasesIn(folder: string): Buffer[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.db(\.gz)?$/.test(name))
    .map((name) => {
      const bytes = readFileSync(join(folder, name))
      return name.endsWith('.gz') ? gunzipSync(bytes) : bytes
    })
}
