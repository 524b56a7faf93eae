import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { parseCertificateRequest } from '../../src/pki/authority/certificate-request.ts'
import type { DerTree } from '../../src/pki/asn1/der.ts'
import { readEnrollmentRequest } from '../../src/pki/authority/enrollment-request.ts'
import { writeSecretFile } from '../../src/pki/secret-file.ts'
import {
  alternativeNames,
  basicConstraints,
  type CertificateOptions,
  DAY_MS,
  keyUsage,
  type Made,
  makeAuthority,
  makeCertificate,
  nameConstraints,
  newEdKey,
  purposes,
} from '../pki/support/fixtures.ts'
import { runHere as run } from './run-here.ts'

// Goal: an operator with an own PKI learns before a start, in one sentence each, of all faults that
// would occur later.

const SPIFFE = 'spiffe://net.example/controller/ctrl1'
const nowMs = Date.now()
const long = { nowMs, notAfterMs: nowMs + 400 * DAY_MS }
const root = makeAuthority('root', long)
const controllers = makeAuthority('controllers', { issuer: root, ...long })
const clients = makeAuthority('clients', { issuer: root, pathLength: 0, ...long })

let folder = ''
let configPath = ''
const path = (name: string): string => join(folder, name)

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-verify-'))
  configPath = path('config.yml')
  configure()
  put('ca.pem', root)
  install(leafOf({}))
  put('signer.pem', clients)
  writeSecretFile(path('signer.key'), keyOf(clients))
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function configure(more = ''): void {
  writeFileSync(
    configPath,
    `id: ctrl1
data: data
trustDomain: net.example
identity:
  cert: cert.pem
  key: controller.key
  ca: ca.pem
  signer: { cert: signer.pem, key: signer.key }
cluster: { bind: "127.0.0.1:21480", advertise: "ctrl1.net.example:21480" }
web: [{ bind: "127.0.0.1:21280", advertise: "ctrl1.net.example:21280" }]
${more}`,
  )
}

const keyOf = ({ keys }: Made): string =>
  keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

function put(name: string, ...chain: Made[]): void {
  writeFileSync(path(name), chain.map(({ certificate }) => certificate.pem).join(''))
}

function install(leaf: Made, ...above: Made[]): void {
  put('cert.pem', leaf, ...(above.length === 0 ? [controllers] : above))
  writeSecretFile(path('controller.key'), keyOf(leaf))
}

interface LeafChanges extends Partial<CertificateOptions> {
  readonly uris?: readonly string[]
  readonly hosts?: readonly string[]
  readonly extra?: readonly DerTree[]
}

function leafOf({ uris = [SPIFFE], hosts, extra, ...rest }: LeafChanges): Made {
  const dnsNames = hosts ?? ['ctrl1.net.example']
  return makeCertificate({
    name: 'ctrl1',
    issuer: controllers,
    nowMs,
    notAfterMs: nowMs + 90 * DAY_MS,
    extensions: [
      alternativeNames({ uris: [...uris], dnsNames: [...dnsNames] }),
      ...(extra ?? [purposes('serverAuth', 'clientAuth'), keyUsage(0x80)]),
    ],
    ...rest,
  })
}

const verify = (...words: string[]): ReturnType<typeof run> =>
  run(['pki', 'verify', '--config', configPath, ...words])

/**
 * The single sentence at the end of the output; it must name a file or an option, and contain a
 * remedy.
 */
async function onlyFault(): Promise<string> {
  const { code, stderr } = await verify()
  const lines = stderr.trimEnd().split('\n')
  expect([code, lines.length], stderr).toEqual([1, 1])
  expect(stderr).toMatch(/^flotilla: (identity|serverCertificates\[0\])\S*: .*[;:] \S/)
  return stderr
}

describe('pki verify', () => {
  test('prints the certificates with their expiry, and exits with 0', async () => {
    const { code, stdout, stderr } = await verify()
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^certificate \.\. ok: spiffe:\S+, ctrl1\.net\.example; until .*89 days/m,
    )
    expect(stdout).toMatch(/^chain \.+ ok: controllers, until .*; root, until .*399 days\)$/m)
    expect(stdout).toMatch(/^renewal \.+ ok: .* from \S+Z on$/m)
    expect(stdout).toMatch(/^signer \.+ ok: clients, until/m)
    const { ok } = JSON.parse((await verify('--json')).stdout) as { ok: boolean }
    expect(ok).toBe(true)
  })

  test.each<[string, string, () => void]>([
    ['a leaf without the SPIFFE id', 'exactly one SPIFFE id', () => install(leafOf({ uris: [] }))],
    [
      'a leaf with the id of another controller',
      'belongs to controller ctrl2',
      () => {
        const uris = ['spiffe://net.example/controller/ctrl2']
        install(leafOf({ uris, name: 'ctrl2' }))
      },
    ],
    [
      'a leaf for another cluster',
      'is not a controller of spiffe://net.example',
      () => install(leafOf({ uris: ['spiffe://other.example/controller/ctrl1'] })),
    ],
    [
      'a chain that does not lead to a CA of the bundle',
      'does not lead to any of the 1 CA certificates',
      () => {
        put('ca.pem', makeAuthority('another root', long))
        rmSync(path('signer.key'))
      },
    ],
    [
      'a bundle of intermediate certificates',
      'is not self-signed, and peers verify up to a root',
      () => {
        put('ca.pem', controllers)
        rmSync(path('signer.key'))
      },
    ],
    [
      'a key that belongs to another certificate',
      'does not belong to the certificate',
      () => writeSecretFile(path('controller.key'), keyOf(clients)),
    ],
    [
      'a leaf that has expired',
      'it expired at',
      () => install(leafOf({ notBeforeMs: nowMs - 9 * DAY_MS, notAfterMs: nowMs - DAY_MS })),
    ],
    [
      'a leaf that is not valid yet',
      'it is not valid before',
      () => install(leafOf({ notBeforeMs: nowMs + DAY_MS })),
    ],
    [
      'a leaf for servers only',
      'extended key usage lacks clientAuth',
      () => install(leafOf({ extra: [purposes('serverAuth')] })),
    ],
    [
      'a leaf for clients only',
      'extended key usage lacks serverAuth',
      () => install(leafOf({ extra: [purposes('clientAuth')] })),
    ],
    [
      'a leaf whose key may not sign',
      'lacks digitalSignature',
      () => install(leafOf({ extra: [keyUsage(0x20)] })),
    ],
    [
      'a key of a type for which members cannot encrypt',
      'keys are EC P-256',
      () => install(leafOf({ keys: newEdKey() })),
    ],
    [
      'a key file that other users can read',
      'chmod 600',
      () => chmodSync(path('controller.key'), 0o644),
    ],
    [
      'an authority whose name constraints make TLS refuse the leaf',
      'peers would refuse it',
      () => {
        const extensions = [nameConstraints([['dns', 'other.example']])]
        const narrow = makeAuthority('narrow', { issuer: root, ...long, extensions })
        install(leafOf({ issuer: narrow }), narrow)
      },
    ],
  ])('refuses %s', async (_what, sentence, spoil) => {
    spoil()
    expect(await onlyFault()).toContain(sentence)
  })

  test.each<[string, string, () => Made]>([
    [
      'without CA:TRUE',
      'not a CA certificate that may sign others',
      () => makeCertificate({ name: 'signer', issuer: root, nowMs, extensions: [keyUsage(0x04)] }),
    ],
    [
      'without keyCertSign',
      'not a CA certificate that may sign others',
      () => {
        const extensions = [basicConstraints(true), keyUsage(0x80)]
        return makeCertificate({ name: 'signer', issuer: root, nowMs, extensions })
      },
    ],
    [
      'below an authority with pathlen 0',
      'allows fewer authorities below itself (path length 0)',
      () => makeAuthority('signer', { issuer: clients, nowMs }),
    ],
    [
      'whose name constraints exclude the certificates that it must sign',
      'which the name constraints of an authority above it exclude',
      () => {
        const extensions = [nameConstraints([['uri', 'other.example']])]
        return makeAuthority('signer', { issuer: root, nowMs, extensions })
      },
    ],
    ['below another root', 'does not lead to any', () => makeAuthority('signer', { nowMs })],
  ])('refuses a signer %s', async (_what, sentence, make) => {
    const signer = make()
    put('signer.pem', signer, clients)
    writeSecretFile(path('signer.key'), keyOf(signer))
    const fault = await onlyFault()
    expect(fault).toContain('identity.signer: ')
    expect(fault).toContain(sentence)
  })

  test('does not need the signing CA’s key on this host', async () => {
    rmSync(path('signer.key'))
    const { code, stdout } = await verify()
    expect(code).toBe(0)
    expect(stdout).toContain('not verified, as its key is not on this host')
  })

  test('reports all faults in one run', async () => {
    install(leafOf({ uris: [], extra: [purposes('serverAuth')] }))
    put('signer.pem', controllers)
    const { code, stderr } = await verify()
    expect(code).toBe(1)
    expect(stderr.trimEnd().split('\n')).toHaveLength(3)
  })

  test('checks the key of a certificate for browsers, and warns if no public CA issued the certificate', async () => {
    configure('serverCertificates: [{ cert: web.pem, key: web.key }]\n')
    const web = makeCertificate({
      name: 'console',
      nowMs,
      issuer: makeAuthority('public', long),
      extensions: [alternativeNames({ dnsNames: ['console.example'] })],
    })
    put('web.pem', web)
    writeSecretFile(path('web.key'), keyOf(controllers))
    expect(await onlyFault()).toContain('web.key: the private key does not belong')
    writeSecretFile(path('web.key'), keyOf(web))
    const { code, stdout } = await verify()
    expect(code).toBe(0)
    expect(stdout).toMatch(/^server \.+ ok: console\.example; console, until/m)
    expect(stdout).toMatch(/^server \.+ warning: .*trust public authorities alone would refuse it/m)
  })
})

describe('pki csr', () => {
  const request = (...words: string[]): ReturnType<typeof run> =>
    run(['pki', 'csr', '--config', configPath, '--out', path('csr.pem'), ...words])

  test('creates a key that only its owner can read, and a request with everything that the certificate needs', async () => {
    rmSync(path('controller.key'))
    const { code, stdout } = await request('--host', '192.0.2.7')
    expect(code).toBe(0)
    expect(stdout).toContain(`controller.key (created)`)
    expect(stdout).toContain(`for ${SPIFFE}, ctrl1.net.example, 192.0.2.7`)
    expect(statSync(path('controller.key')).mode & 0o777).toBe(0o600)
    const pem = readFileSync(path('csr.pem'), 'utf8')
    expect(pem).not.toContain('PRIVATE')
    expect((await parseCertificateRequest(pem)).commonName).toBe('ctrl1')
    const { names } = readEnrollmentRequest(pem)
    expect([names.uris, names.dnsNames]).toEqual([[SPIFFE], ['ctrl1.net.example']])
    expect(names.ipAddresses).toHaveLength(1)
  })

  test('keeps an existing key, and refuses a key that other users can read', async () => {
    const before = readFileSync(path('controller.key'), 'utf8')
    expect((await request()).stdout).toContain('(kept)')
    expect(readFileSync(path('controller.key'), 'utf8')).toBe(before)
    chmodSync(path('controller.key'), 0o644)
    const refused = await request()
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('chmod 600')])
    expect((await request('--host', 'a b')).code).toBe(2)
  })
})
