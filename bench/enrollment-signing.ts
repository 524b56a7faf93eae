import { createPublicKey, sign, verify } from 'node:crypto'
import { parseArgs } from 'node:util'

import { systemClock } from '../src/lib/clock.ts'
import {
  createIssuingAuthority,
  createRootAuthority,
  validityStartingAt,
} from '../src/pki/authority/authority.ts'
import { issueCertificates } from '../src/pki/authority/issue-certificates.ts'
import { parseCertificate } from '../src/pki/certificate.ts'
import { parseCertificateSigner } from '../src/pki/authority/enrolled-certificate.ts'
import { CertificateWorker } from '../src/threads/certificate-worker.ts'
import { DerReader, derTag, readOnlyDerValue, readBitStringBytes } from '../src/pki/asn1/der.ts'
import {
  type KeyPair,
  newEcKey,
  newRsaKey,
  requestDer,
  spkiOf,
} from '../test/pki/support/fixtures.ts'
import { encodePemBlock } from '../src/pki/pem.ts'
import { heading, spread } from './support/report.ts'

// Measures the cost of issuing a certificate, compared with its minimum: one signature check with a
// new key, and one signature. Alternates between the bare OpenSSL calls in this thread, the
// complete work in this thread (reading, checking, encoding), and the complete work through the
// certificate thread with several callers.

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    clients: { type: 'string', default: '16' },
  },
})
const seconds = Number(options.seconds)
const clients = Number(options.clients)

console.log(
  heading(
    `Certificates issued a second through a thread, ${clients} callers, beside bare verifying and signing; ` +
      'min / median / max over rounds',
  ),
)

const nowMs = Date.now()
const validity = validityStartingAt(nowMs, 10 * 365 * 24 * 3_600_000)
const root = await createRootAuthority({ commonName: 'bench root', validity })
const authority = await createIssuingAuthority({ commonName: 'bench issuing', root, validity })
const issuer = parseCertificateSigner(authority)
const settings = {
  trustDomain: 'bench.internal',
  enrolledCertificateMs: 365 * 24 * 3_600_000,
  sessionCertificateMs: 12 * 3_600_000,
}

interface Sample {
  readonly pem: string
  readonly keyPem: string
  readonly signed: Buffer
  readonly signature: Buffer
  readonly tbs: Buffer
}

function sampleOf(keys: KeyPair): Sample {
  const der = requestDer({ keys })
  const outer = new DerReader(readOnlyDerValue(der, derTag.sequence).contents)
  const signed = outer.take(derTag.sequence).whole
  outer.next()
  const signature = readBitStringBytes(outer.next())
  const pem = encodePemBlock('CERTIFICATE REQUEST', der)
  const order = { kind: 'identity', identityId: 'id', requestPem: pem } as const
  const [{ leafPem }] = issueCertificates(order, issuer, settings, nowMs)
  const { tbs } = parseCertificate(leafPem).contents
  return { pem, keyPem: encodePemBlock('PUBLIC KEY', spkiOf(keys)), signed, signature, tbs }
}

const hashes: Readonly<Record<string, string>> = { 'EC P-384': 'sha384' }

function bare(sample: Sample, hash: string): void {
  // The fastest way to create a key object in Node.js.
  const key = createPublicKey(sample.keyPem)
  if (!verify(hash, sample.signed, key, sample.signature)) throw new Error('a request is not good')
  sign(issuer.hash, sample.tbs, issuer.key)
}

/**
 * Operations per second, and processor time of each in this thread and in all other threads, µs.
 */
interface Figures {
  readonly rate: number
  readonly hereUs: number
  readonly elsewhereUs: number
}

function meter(): (done: number) => Figures {
  const from = performance.now()
  const whole = process.cpuUsage()
  const here = process.threadCpuUsage()
  return (done) => {
    const ms = performance.now() - from
    const ofThread = process.threadCpuUsage(here)
    const ofAll = process.cpuUsage(whole)
    const hereUs = (ofThread.user + ofThread.system) / done
    const allUs = (ofAll.user + ofAll.system) / done
    return { rate: (done * 1000) / ms, hereUs, elsewhereUs: allUs - hereUs }
  }
}

function figuresOf(samples: readonly Sample[], work: (sample: Sample) => void): Figures {
  const measured = meter()
  const until = performance.now() + seconds * 1000
  let done = 0
  while (performance.now() < until) {
    for (const sample of samples) work(sample)
    done += samples.length
  }
  return measured(done)
}

const worker = new CertificateWorker({
  limits: { certificateMsMax: 2000, certificateWaitMsMax: 5000, certificatesWaitingMax: 1024 },
  settings,
  authority: () => authority,
  clock: systemClock,
})

async function throughThread(samples: readonly Sample[]): Promise<Figures> {
  const measured = meter()
  const until = performance.now() + seconds * 1000
  let done = 0
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let at = client; performance.now() < until; at += 1) {
        const requestPem = samples[at % samples.length]?.pem ?? ''
        await worker.identity({ identityId: 'id', requestPem }, `client ${client}`)
        done += 1
      }
    }),
  )
  return measured(done)
}

const kinds: readonly (readonly [string, () => KeyPair])[] = [
  ['EC P-256', () => newEcKey()],
  ['EC P-384', () => newEcKey('P-384')],
  ['RSA 2048', () => newRsaKey()],
]
for (const [kind, newKey] of kinds) {
  const samples = Array.from({ length: 32 }, () => sampleOf(newKey()))
  const hash = hashes[kind] ?? 'sha256'
  const issue = ({ pem }: Sample): void => {
    const order = { kind: 'identity', identityId: 'id', requestPem: pem } as const
    issueCertificates(order, issuer, settings, nowMs)
  }
  const bares: Figures[] = []
  const here: Figures[] = []
  const threads: Figures[] = []
  figuresOf(samples, issue)
  await throughThread(samples)
  for (let round = 0; round < Number(options.rounds); round += 1) {
    bares.push(figuresOf(samples, (sample) => bare(sample, hash)))
    here.push(figuresOf(samples, issue))
    threads.push(await throughThread(samples))
  }
  const line = (title: string, list: readonly Figures[]): string => {
    const rates = spread(list.map(({ rate }) => rate))
    const ratios = list.map(({ rate }, at) => rate / (bares[at]?.rate ?? NaN))
    const own = spread(list.map(({ hereUs }) => hereUs))
    const others = spread(list.map(({ elsewhereUs }) => elsewhereUs))
    return `  ${title.padEnd(14)} ${rates} /s, ${spread(ratios, 2)} of bare; processor time ${own} us in this thread, ${others} us in others`
  }
  console.log(`requests of ${kind} keys, signed by EC P-256`)
  console.log(line('bare', bares))
  console.log(line('issued here', here))
  console.log(line('by the thread', threads))
}
await worker.close()
