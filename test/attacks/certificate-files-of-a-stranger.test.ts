import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { CertificateRenewer } from '../../src/cluster/secrets/certificate-renewer.ts'
import {
  type CertificateWithKey,
  issueLeaf,
  issueLeafForKey,
  type LeafOptions,
} from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { writeSecretFile } from '../../src/pki/secret-file.ts'
import { newCa } from '../support/authorities.ts'

// The attack: an operator's authority, or the program that renews certificates with it, is
// compromised. It supplies certificates that give the controller another identity, or that its
// peers reject.

const DAY_MS = 24 * 60 * 60_000
const nowMs = Date.UTC(2030, 0, 1)
const authority = await newCa('of the operator', nowMs)

let dir = ''
let paths = { cert: '', key: '', ca: '' }
let leaf: CertificateWithKey
let taken: string[] = []
let faults: string[] = []

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'flotilla-renewal-'))
  paths = { cert: path('cert.pem'), key: path('key.pem'), ca: path('ca.pem') }
  leaf = await issueLeaf(contentOf({}))
  writeFileSync(paths.cert, leaf.certificatePem)
  writeSecretFile(paths.key, leaf.privateKeyPem)
  writeFileSync(paths.ca, authority.certificatePem)
  taken = []
  faults = []
})
afterEach(() => {
  rmSync(dir, { recursive: true, force: true })
})

const path = (name: string): string => join(dir, name)

function contentOf(changes: Partial<LeafOptions>): LeafOptions {
  return {
    issuer: authority,
    commonName: 'ctrl1',
    hosts: ['ctrl1.example'],
    uris: ['spiffe://net.example/controller/ctrl1'],
    usages: ['server', 'client'],
    validity: { notBeforeMs: nowMs - 90 * DAY_MS, notAfterMs: nowMs + DAY_MS },
    ...changes,
  }
}

/** Replaces the current certificate with another one for the same key. */
async function renewedBy(changes: Partial<LeafOptions>): Promise<void> {
  const { native } = parseCertificates(leaf.certificatePem)[0]
  const spki = Uint8Array.from(native.publicKey.export({ type: 'spki', format: 'der' }))
  const validity = { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + 90 * DAY_MS }
  writeFileSync(paths.cert, await issueLeafForKey(contentOf({ validity, ...changes }), spki))
  const silent = () => undefined
  const renewer = new CertificateRenewer({
    selfId: 'ctrl1',
    trustDomain: 'net.example',
    paths,
    hosts: [],
    identity: { ...leaf, caPem: authority.certificatePem },
    issuing: () => null,
    onRenewed: ({ certificatePem }) => taken.push(certificatePem),
    alarms: { raise: silent, clear: silent },
    clock: { nowMs: () => nowMs, monotonicMs: () => 0 },
    log: { debug: silent, info: silent, warn: silent, error: silent },
  })
  await renewer.reload().catch((error: unknown) => faults.push(String(error)))
}

test('a valid certificate file is accepted, which proves that the refusals in the other tests have the intended cause', async () => {
  await renewedBy({})
  expect([taken.length, faults]).toEqual([1, []])
})

test('a certificate that the network issued without the controller’s SPIFFE id is refused', async () => {
  for (const uris of [
    [],
    ['spiffe://net.example/controller/ctrl2'],
    ['spiffe://net.example/identity/ctrl1'],
  ]) {
    await renewedBy({ uris, commonName: uris[0]?.split('/').at(-1) ?? 'ctrl1' })
  }
  expect(taken).toEqual([])
  expect(faults).toHaveLength(3)
})

test('a certificate that peers would refuse for TLS clients is refused', async () => {
  await renewedBy({ usages: ['server'] })
  expect(taken).toEqual([])
  expect(faults.join()).toContain('lacks clientAuth')
})
