import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createHash, X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { openZitiNetwork, writeController } from '../test/cli/migrate/openziti-folder.ts'
import type { StoredFields } from '../test/migrate/sample-network.ts'
import { flotilla } from '../test/process/support/cluster.ts'
import { clientCertificate } from '../test/support/authorities.ts'
import { boltzBoolean, boltzSet, boltzText, boltzTime } from '../test/support/boltz-values.ts'
import { bucketOf } from '../test/support/bolt-writer.ts'
import { processorMs } from './support/processor-time.ts'
import { heading } from './support/report.ts'

// Measures how long the migration of a large OpenZiti network takes, in which the network is down:
// a database with many identities, each with its own certificate, is converted and restored. Goal:
// 60 s and 1 GiB for 100,000 identities.

const { values: options } = parseArgs({
  options: { identities: { type: 'string', default: '100000' } },
})
const identities = Number(options.identities)
const MIB = 1024 * 1024
const SAMPLE_MS = 20

interface Measured {
  readonly wallMs: number
  readonly processorMs: number
  readonly peakMib: number
}

/** Runs a command to its end. @throws if it fails. */
async function measured(...words: readonly string[]): Promise<Measured> {
  const begin = performance.now()
  const child = spawn(flotilla, words, { stdio: ['ignore', 'ignore', 'pipe'] })
  const { pid = 0 } = child
  let [spentMs, peakMib] = [0, 0]
  const timer = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8')
      peakMib = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? peakMib * 1024) / 1024
      spentMs = processorMs(pid)
    } catch {
      // The process ended between two samples.
    }
  }, SAMPLE_MS)
  let errors = ''
  child.stderr.on('data', (text: Buffer) => (errors += text.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  clearInterval(timer)
  if (code !== 0) throw new Error(`${words.join(' ')} failed:\n${errors}`)
  return { wallMs: performance.now() - begin, processorMs: spentMs, peakMib }
}

const base = {
  createdAt: boltzTime('2026-03-01T10:00:00Z'),
  updatedAt: boltzTime('2026-03-01T10:00:00Z'),
}

function identityFields(n: number): StoredFields {
  return {
    ...base,
    tags: bucketOf({}),
    name: boltzText(`device ${n}`),
    type: boltzText('Default'),
    authPolicyId: boltzText('default'),
    roleAttributes: boltzSet('all', `site-${n % 100}`),
  }
}

function certificateFields(n: number, certPem: string): StoredFields {
  const sha1 = createHash('sha1').update(
    Buffer.from(certPem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64'),
  )
  return {
    ...base,
    tags: bucketOf({}),
    method: boltzText('cert'),
    identity: boltzText(`device-${n}`),
    certPem: boltzText(certPem),
    certFingerprint: boltzText(sha1.digest('hex')),
    isIssuedByNetwork: boltzBoolean(true),
  }
}

/**
 * The certificate with another serial number, as PEM. Its signature is then invalid, but a
 * migration does not verify signatures, and signing 100,000 certificates would take minutes.
 */
function withSerial({ raw, serialNumber }: X509Certificate, n: number): string {
  const der = Buffer.from(raw)
  der.writeUInt32BE(n, der.indexOf(Buffer.from(serialNumber, 'hex')) + 4)
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}

console.log(heading(`Migration of ${identities} identities, each with a certificate`))
const folder = mkdtempSync(join(tmpdir(), 'flotilla-bench-migrate-'))
try {
  const nowMs = Date.now()
  const network = await openZitiNetwork(nowMs)
  const made: Record<'identities' | 'authenticators', Record<string, StoredFields>> = {
    identities: { ...network.stores['identities'] },
    authenticators: { ...network.stores['authenticators'] },
  }
  const certificate = new X509Certificate(await clientCertificate(network.root, 'device', nowMs))
  for (let n = 0; n < identities; n += 1) {
    made.identities[`device-${n}`] = identityFields(n)
    made.authenticators[`cert-${n}`] = certificateFields(n, withSerial(certificate, n))
  }
  const stores = { ...network.stores, ...made }
  const id = 'ctrl1'
  const { configuration, database } = await writeController({
    folder,
    id,
    port: 24_262,
    network,
    nowMs,
    stores,
  })
  const [backup, configs] = [join(folder, 'net.backup'), join(folder, 'configs')]
  const config = join(configs, id, 'config.yml')
  console.log(`database ${(statSync(database).size / MIB).toFixed(0)} MiB`)
  const steps = {
    'migrate check': ['migrate', 'check', configuration],
    'migrate run': ['migrate', configuration, '--out', backup, '--configs', configs, '--plaintext'],
    'snapshot restore': ['cluster', 'snapshot', 'restore', backup, config],
  }
  for (const [name, words] of Object.entries(steps)) {
    const { wallMs, processorMs: spentMs, peakMib } = await measured(...words)
    console.log(
      `${name}: ${(wallMs / 1000).toFixed(1)} s (${(spentMs / 1000).toFixed(1)} s of processor time), peak ${peakMib.toFixed(0)} MiB`,
    )
  }
  console.log(`backup ${(statSync(backup).size / MIB).toFixed(0)} MiB`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
