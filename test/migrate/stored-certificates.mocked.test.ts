import type * as Crypto from 'node:crypto'
import { expect, test, vi } from 'vitest'

import type { StoredFields } from './sample-network.ts'

const parsed = vi.fn()
vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof Crypto>()
  class X509Certificate extends crypto.X509Certificate {
    constructor(input: string | Buffer) {
      super(input)
      parsed()
    }
  }
  return { ...crypto, X509Certificate }
})

const { convertDatabase } = await import('../../src/migrate/database-conversion.ts')
const { MemorySource } = await import('../../src/migrate/bolt/byte-source.ts')
const { OpenZitiDatabase } = await import('../../src/migrate/database.ts')
const { MigrationReport } = await import('../../src/migrate/report.ts')
const { parseCertificates } = await import('../../src/pki/certificate.ts')
const { clientCertificate, newCa } = await import('../support/authorities.ts')
const { boltzText } = await import('../support/boltz-values.ts')
const { writeBolt } = await import('../support/bolt-writer.ts')
const { databaseOf, sampleStores, sha1Of } = await import('./sample-network.ts')

const NOW = Date.parse('2026-03-03T00:00:00Z')

// Node.js stores a parsed certificate in 8 KB outside of the heap, which only a full garbage
// collection frees.
test('the migration reads the certificates of identities without Node’s own certificate objects', async () => {
  const [network, partner] = [await newCa('network', NOW), await newCa('partner', NOW)]
  const stores = sampleStores({
    leafPem: await clientCertificate(network, 'edge-1', NOW),
    caPem: partner.certificatePem,
    partnerPem: await clientCertificate(partner, 'partner 1', NOW),
  })
  const authenticators: Record<string, StoredFields> = { ...stores['authenticators'] }
  for (let n = 0; n < 20; n += 1) {
    for (const issuer of [network, partner]) {
      const pem = await clientCertificate(issuer, `device ${n}`, NOW)
      const from = issuer === network ? 'certificate-1' : 'partner-1'
      const fields = { certPem: boltzText(pem), certFingerprint: boltzText(sha1Of(pem)) }
      authenticators[`${from}-${n}`] = { ...stores['authenticators']?.[from], ...fields }
    }
  }
  const source = new MemorySource(writeBolt(databaseOf({ ...stores, authenticators }, 48)))
  const options = {
    nowMs: NOW,
    clusterId: 'cluster-1',
    factorKey: new Uint8Array(32),
    routerCertificates: new Map(),
    controllerHosts: new Set<string>(),
    networkAuthorities: parseCertificates(network.certificatePem),
    report: new MigrationReport(),
  }
  parsed.mockClear()
  const state = convertDatabase(new OpenZitiDatabase(source, () => undefined), options)
  expect(state.table('authenticator').rows.size).toBe(43)
  // The certificates of the CA and of a router.
  expect(parsed.mock.calls.length).toBeLessThanOrEqual(3)
  const { caId } = { ...state.get('authenticator', 'partner-1-7') }
  expect(caId).toBe('ca-1')
})
