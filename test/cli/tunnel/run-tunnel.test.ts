import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { identityFileText } from '../../../src/cli/enroll/identity-file.ts'
import { readIdentityFile } from '../../../src/cli/tunnel/identity-file.ts'
import { runTunnel } from '../../../src/cli/tunnel/run.ts'
import {
  type CertificateWithKey,
  issueLeaf,
  validityStartingAt,
} from '../../../src/pki/authority/authority.ts'
import { newCa } from '../../support/authorities.ts'

// Goal: the tunnel reads identity files of this program and of other enrollment tools, and reports
// an error in a file or option before it dials.

let folder: string
let root: CertificateWithKey
let key: CertificateWithKey
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-tunnel-'))
  root = await newCa('network root', Date.now())
  const validity = validityStartingAt(Date.now(), 3_600_000)
  const more = { uris: [], hosts: [], usages: ['client' as const], validity }
  key = await issueLeaf({ issuer: root, commonName: 'laptop', ...more })
})
afterAll(() => rmSync(folder, { recursive: true }))

function written(name: string, text: string, mode = 0o600): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

const enrolled = (origins: readonly string[] = []) =>
  identityFileText(
    { origin: 'https://ctrl1.test:1280', ...key, caPem: root.certificatePem },
    origins,
  )

test('tunnel run reads an identity file that flotilla identity enroll wrote', () => {
  const read = readIdentityFile(written('ours.json', enrolled()))
  expect(read).toEqual({
    origin: 'https://ctrl1.test:1280',
    origins: ['https://ctrl1.test:1280'],
    ...key,
    caPem: root.certificatePem,
  })
})

test('tunnel run reads an identity file that lists several controllers, and whose keys and certificates are paths', () => {
  written('laptop.key', key.privateKeyPem)
  written('laptop.pem', key.certificatePem)
  const ca = written('ca.pem', root.certificatePem)
  const urls = ['https://ctrl1.test:1280/edge/client/v1', 'https://ctrl2.test:1280/edge/client/v1']
  const id = { key: 'file://laptop.key', cert: 'laptop.pem', ca: `file://${ca}` }
  const text = JSON.stringify({ ztAPI: urls[0], ztAPIs: urls, id })
  const { origins, ...parts } = readIdentityFile(written('theirs.json', text))
  expect(origins).toEqual(['https://ctrl1.test:1280', 'https://ctrl2.test:1280'])
  expect(parts).toMatchObject({ ...key, caPem: root.certificatePem })
})

test('tunnel run reads all controllers that flotilla identity enroll has written', () => {
  const all = ['https://ctrl1.test:1280', 'https://ctrl2.test:1280']
  expect(readIdentityFile(written('all.json', enrolled(all))).origins).toEqual(all)
})

test.each([
  ['UTF-8 with a byte order mark', (text: string) => Buffer.from(`\ufeff${text}`)],
  ['UTF-16, as PowerShell writes it', (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')],
  [
    'UTF-16 in big-endian order',
    (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16(),
  ],
])('tunnel run reads an identity file in %s', (what, encoded) => {
  const path = join(folder, `${what}.json`)
  writeFileSync(path, encoded(enrolled()), { mode: 0o600 })
  expect(readIdentityFile(path)).toMatchObject({ ...key, caPem: root.certificatePem })
})

test('tunnel run refuses a key in a hardware token with a clear message, and does not print the PIN', () => {
  const id = { key: 'pkcs11:token=a?pin-value=1234', cert: 'x.pem', ca: 'ca.pem' }
  const path = written('token.json', JSON.stringify({ ztAPI: 'https://ctrl1.test:1280', id }))
  expect(() => readIdentityFile(path)).toThrow(
    'id.key: a key in a PKCS #11 token (pkcs11:) is not supported; name the file of a key in PEM',
  )
  expect(() => readIdentityFile(path)).not.toThrow('1234')
})

test.each([
  ['text that is not JSON', 'it is no JSON object', () => 'token'],
  [
    'an address that is not HTTPS',
    'ztAPI is no https:// address',
    () => enrolled().replace('https:', 'http:'),
  ],
  ['no key', 'id.key: it is missing', () => enrolled().replace('"key"', '"k"')],
  [
    'a key that does not belong to the certificate',
    'key',
    () =>
      enrolled().replace(
        JSON.stringify(key.privateKeyPem).slice(1, -1),
        JSON.stringify(root.privateKeyPem).slice(1, -1),
      ),
  ],
])('tunnel run refuses an identity file with %s, and prints the remedy', (what, reason, text) => {
  const path = written(`${what}.json`, text())
  expect(() => readIdentityFile(path)).toThrow(reason)
  expect(() => readIdentityFile(path)).toThrow('flotilla identity enroll --out FILE')
})

test('tunnel run refuses an identity file that other users can read', () => {
  const path = written('open.json', enrolled(), 0o644)
  expect(() => readIdentityFile(path)).toThrow('chmod 600')
})

const options = {
  identity: ['laptop.json'],
  bind: '127.0.0.1',
  resolver: 'udp://127.0.0.1:53',
  dnsRange: '100.64.0.1/10',
  logLevel: 'info',
}

test.each([
  ['an invalid port', { proxy: ['web:99999'] }, 'expected SERVICE:PORT'],
  [
    'proxy ports in another mode',
    { mode: 'host' as const, proxy: ['web:80'] },
    'leave out --mode host',
  ],
  ['an invalid address', { bind: 'localhost' }, 'expected an IPv4 address'],
  ['the same file twice', { identity: ['a', 'a'] }, 'a file is given twice'],
  [
    'several identities in mode tproxy',
    { identity: ['a', 'b'], mode: 'tproxy' as const },
    'one identity',
  ],
  ['a file that does not exist', {}, 'laptop.json cannot be read'],
])('tunnel run does not start with invalid options: %s', async (_what, more, reason) => {
  await expect(runTunnel({ ...options, ...more })).rejects.toThrow(reason)
})
