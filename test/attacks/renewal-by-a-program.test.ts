import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { CertificateRenewer } from '../../src/cluster/secrets/certificate-renewer.ts'
import { RenewalCommands } from '../../src/controller/certificates/renewal-commands.ts'
import {
  type CertifiedKey,
  issueLeaf,
  issueLeafFor,
  type LeafOptions,
} from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { writeSecretFile } from '../../src/pki/key-file.ts'
import { newCa } from '../support/authorities.ts'

// The attack: an authority of the operator, or the program that renews by it, is in other hands. It hands over certificates that
// make the controller another one, or useless to its peers; names of files reach a shell; the program reads what is not for it.

const DAY_MS = 24 * 60 * 60_000
const nowMs = Date.UTC(2030, 0, 1)
const authority = await newCa('of the operator', nowMs)

let dir = ''
let paths = { cert: '', key: '', ca: '' }
let leaf: CertifiedKey
let taken: string[] = []
let faults: string[] = []

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'flotilla-renewal-'))
  // Whoever installs may choose any name for a folder.
  paths = { cert: path('$(touch pwned); cert.pem'), key: path('key.pem'), ca: path('ca.pem') }
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

/** What the program leaves where the certificate was, for the same key; due at once. */
async function renewedBy(changes: Partial<LeafOptions> | null, lines = ''): Promise<void> {
  const { native } = parseCertificates(leaf.certificatePem)[0]
  const spki = Uint8Array.from(native.publicKey.export({ type: 'spki', format: 'der' }))
  const validity = { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + 90 * DAY_MS }
  const next = await issueLeafFor(contentOf({ validity, ...changes }), spki)
  writeFileSync(path('next.pem'), changes === null ? leaf.certificatePem : next)
  writeFileSync(path('renew'), `#!/bin/sh\ncat '${path('next.pem')}' > "$1"\n${lines}\n`)
  chmodSync(path('renew'), 0o755)
  const clock = { nowMs: () => nowMs, monotonicMs: () => waitedMs }
  let waitedMs = 0
  const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined }
  const log = { ...silent, error: (_: object, message: string) => faults.push(message) }
  const alarms = { raise: () => undefined, clear: () => undefined }
  const renewer = new CertificateRenewer({
    selfId: 'ctrl1',
    trustDomain: 'net.example',
    paths,
    hosts: [],
    isRenewedElsewhere: true,
    identity: { ...leaf, caPem: authority.certificatePem },
    issuing: () => null,
    onRenewed: ({ certificatePem }) => taken.push(certificatePem),
    alarms,
    clock,
    log,
  })
  const commands = new RenewalCommands({
    certificates: [
      {
        cert: paths.cert,
        key: paths.key,
        command: [path('renew')],
        renewAtMs: () => renewer.renewAtMs,
        inForce: () => renewer.leaf.sha256,
        reload: () => renewer.reload(),
      },
    ],
    timeoutMs: 20_000,
    environment: { ...process.env, FLOTILLA_API_TOKEN: 'hunter2' },
    alarms,
    clock,
    log: log as never,
  })
  waitedMs = 60_000
  await commands.look()
  await commands.close()
}

test('a good certificate is taken, or the rest of this file would show nothing', async () => {
  await renewedBy({})
  expect([taken.length, faults]).toEqual([1, []])
})

test('a certificate of the same authority without the SPIFFE id of the controller is not taken', async () => {
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

test('a certificate that peers would refuse from a client is not taken', async () => {
  await renewedBy({ usages: ['server'] })
  expect(taken).toEqual([])
  expect(faults.join()).toContain('lacks clientAuth')
})

test('the name of a file reaches no shell, nor does what the program prints', async () => {
  await renewedBy({}, `echo '; touch ${path('printed')}'; echo '$(touch ${path('printed')})' >&2`)
  expect(existsSync(path('pwned')) || existsSync('pwned')).toBe(false)
  expect(existsSync(path('printed'))).toBe(false)
  expect(taken).toHaveLength(1)
})

test('the program sees nothing that was given to the controller in its environment', async () => {
  await renewedBy({}, `env > '${path('env')}'`)
  expect(readFileSync(path('env'), 'utf8')).not.toContain('hunter2')
})
