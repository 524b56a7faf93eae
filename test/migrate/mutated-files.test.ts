import { beforeAll, expect, test } from 'vitest'

import { clientCertificate, newCa } from '../support/authorities.ts'
import { writeBolt } from '../support/bolt-writer.ts'
import { runMutations } from './mutated-files.ts'
import { databaseOf, sampleStores } from './sample-network.ts'

const NOW = Date.parse('2026-03-03T00:00:00Z')
let originals: Buffer[] = []

beforeAll(async () => {
  const [network, partner] = [await newCa('network', NOW), await newCa('partner', NOW)]
  const stores = sampleStores({
    leafPem: await clientCertificate(network, 'edge-1', NOW),
    caPem: partner.certificatePem,
    partnerPem: await clientCertificate(partner, 'partner 1', NOW),
  })
  originals = [48, 41].map((version) => writeBolt(databaseOf(stores, version)))
})

// For a longer run: node test/migrate/fuzz-campaign.ts --files 100000
test('flotilla migrate reads every damaged database without silently losing a record, or refuses it with one sentence', () => {
  const figures = runMutations(originals, { count: 600, seed: 1 })
  expect(figures.files).toBe(600)
  expect(figures.refused).toBeGreaterThan(100)
  expect(figures.converted).toBeGreaterThan(100)
})
