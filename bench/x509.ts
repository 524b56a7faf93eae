import { X509Certificate } from 'node:crypto'

import { readCertificate } from '../src/pki/asn1/certificate-contents.ts'
import {
  createRootAuthority,
  issueLeaf,
  issueLeafForKey,
  type LeafOptions,
  validityStartingAt,
} from '../src/pki/authority/authority.ts'
import { X509Certificate as LibraryCertificate } from '../src/pki/authority/x509.ts'
import { parseCertificate } from '../src/pki/certificate.ts'
import { heading } from './support/report.ts'

// Measures the cost of reading a certificate of an unknown caller: processor time of our strict DER
// reader, of reading everything that a controller needs, of Node.js, and of the X.509 library, for
// one P-256 leaf certificate. ADR 27 uses these values. `node bench/x509.ts`

const ROUNDS = 3000

const validity = validityStartingAt(Date.now(), 24 * 60 * 60 * 1000)
const issuer = await createRootAuthority({ commonName: 'root', validity })
const wanted: LeafOptions = {
  issuer,
  commonName: 'leaf',
  uris: ['spiffe://bench.test/identity/leaf'],
  hosts: ['leaf.test'],
  validity,
  usages: ['client'],
}
const leaf = await issueLeaf(wanted)
const der = new X509Certificate(leaf.certificatePem).raw

const readers: readonly (readonly [string, () => unknown])[] = [
  ['our DER reader', () => readCertificate(der)],
  ['all that we read, with the key', () => parseCertificate(der)],
  [
    'Node',
    () => {
      const { subject, issuer, subjectAltName, publicKey, serialNumber, validTo } =
        new X509Certificate(der)
      return [subject, issuer, subjectAltName, publicKey, serialNumber, validTo]
    },
  ],
  [
    'the library',
    () => {
      const { subject, issuer, extensions, publicKey, serialNumber, notAfter } =
        new LibraryCertificate(der)
      return [subject, issuer, extensions, publicKey, serialNumber, notAfter]
    },
  ],
]

console.log(heading(`Reading one certificate, ${ROUNDS} times each`))
for (const [name, read] of readers) {
  for (let round = 0; round < ROUNDS / 3; round += 1) read()
  const before = process.cpuUsage()
  for (let round = 0; round < ROUNDS; round += 1) read()
  const { user, system } = process.cpuUsage(before)
  console.log(`${name.padEnd(34)} ${((user + system) / ROUNDS).toFixed(0).padStart(6)} µs`)
}

// For the cost of issuing, run `node bench/enrollment-signing.ts`.
const spki = new X509Certificate(der).publicKey.export({ type: 'spki', format: 'der' })
const ISSUED = 300
for (let round = 0; round < ISSUED / 3; round += 1) await issueLeafForKey(wanted, spki)
const begun = process.cpuUsage()
for (let round = 0; round < ISSUED; round += 1) await issueLeafForKey(wanted, spki)
const used = process.cpuUsage(begun)
const eachUs = (used.user + used.system) / ISSUED
console.log(`${'the library, issuing'.padEnd(34)} ${eachUs.toFixed(0).padStart(6)} µs`)
