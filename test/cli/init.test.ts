import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'

import type { AdminFile } from '../../src/cli/bootstrap/admin-file.ts'
import { planConfig } from '../../src/cli/bootstrap/config-from-flags.ts'
import { createCluster } from '../../src/cli/bootstrap/create-cluster.ts'
import type { InitResult } from '../../src/cli/bootstrap/init.ts'
import { composeConfig, setConfigOptions } from '../../src/config/controller/compose.ts'
import { parseControllerConfig } from '../../src/config/controller/load.ts'
import {
  type CertificateWithKey,
  createIssuingAuthority,
  createRootAuthority,
  issueControllerCertificate,
} from '../../src/pki/authority/authority.ts'
import {
  checkCertificateChain,
  leafControllerId,
  parseCertificates,
} from '../../src/pki/certificate.ts'
import { readDataIdentity } from '../../src/store/log/data-identity.ts'
import { formedSecret } from '../support/formed-secret.ts'
import { freePortBlock } from '../support/ports.ts'
import { flotilla, run } from './support.ts'

// Goal: one command creates a complete first controller, or leaves nothing that prevents a retry.

const DAY_MS = 24 * 60 * 60 * 1000

let folder = ''
let config = ''
let binds: string[] = []

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-init-'))
  config = join(folder, 'etc', 'config.yml')
  const port = await freePortBlock(1)
  binds = [
    '--bind-api',
    `127.0.0.1:${port}`,
    '--bind-router',
    `127.0.0.1:${port + 100}`,
    '--bind-cluster',
    `127.0.0.1:${port + 200}`,
  ]
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function init(...words: string[]): ReturnType<typeof run> {
  return run(['cluster', 'init', config, ...words])
}

function inputTo(words: readonly string[], text: string): Promise<number | null> {
  return new Promise((done, reject) => {
    const child = spawn(flotilla, words, { stdio: ['pipe', 'ignore', 'ignore'] })
    child.once('error', reject)
    child.once('close', done)
    child.stdin.end(text)
  })
}

/** Writes the files of an operator's own PKI, to which the existing configuration refers. */
async function bringAuthority(): Promise<{
  root: CertificateWithKey
  issuing: CertificateWithKey
}> {
  const validity = { notBeforeMs: Date.now() - 1000, notAfterMs: Date.now() + 90 * DAY_MS }
  const root = await createRootAuthority({ commonName: 'our root', validity })
  const issuing = await createIssuingAuthority({ commonName: 'our issuing', root, validity })
  mkdirSync(join(folder, 'etc'))
  const text = composeConfig({
    id: 'a',
    data: 'data',
    trustDomain: 'ours.internal',
    meshBind: binds[5] ?? '',
    meshAdvertise: binds[5] ?? '',
    routersBind: binds[3] ?? '',
    webBind: binds[1] ?? '',
    webAdvertise: binds[1] ?? '',
    seeds: [],
  })
  const document = parse(text) as { identity?: Record<string, unknown> }
  document.identity = { ...document.identity, signer: { cert: 'signer.pem', key: 'signer.key' } }
  writeFileSync(config, stringify(document))
  writeFileSync(join(folder, 'etc', 'ca.pem'), root.certificatePem)
  writeFileSync(join(folder, 'etc', 'signer.pem'), issuing.certificatePem)
  writeFileSync(join(folder, 'etc', 'signer.key'), issuing.privateKeyPem, { mode: 0o600 })
  return { root, issuing }
}

const etc = (name: string): string => readFileSync(join(folder, 'etc', name), 'utf8')

describe('cluster init with an external CA', () => {
  test('uses a certificate from this CA, trusts its root, and creates no other root', async () => {
    const { root, issuing } = await bringAuthority()
    const done = await init(...binds, '--json')
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(done.stdout)).toMatchObject({ rootKey: null })
    expect(existsSync(join(folder, 'etc', 'pki', 'root.key'))).toBe(false)
    expect(etc('ca.pem')).toBe(root.certificatePem)
    const chain = parseCertificates(etc('cert.pem'))
    checkCertificateChain(chain, parseCertificates(root.certificatePem), Date.now())
    expect(chain[0].native.checkIssued(parseCertificates(issuing.certificatePem)[0].native)).toBe(
      true,
    )
    // The authority expires before a generated certificate would.
    expect(chain[0].notAfterMs).toBeLessThan(Date.now() + 91 * DAY_MS)
    const shared = await formedSecret(join(folder, 'etc'), 'a', 'issuingAuthority')
    expect(Buffer.from(shared.secret).toString()).toBe(issuing.privateKeyPem)
    expect(shared.certificatePem).toBe(issuing.certificatePem)
    expect((await run(['controller', 'check', config])).code).toBe(0)
  })

  test('keeps an existing certificate and key', async () => {
    const { issuing } = await bringAuthority()
    const leaf = await issueControllerCertificate({
      issuer: issuing,
      trustDomain: 'ours.internal',
      id: 'a',
      hosts: ['127.0.0.1'],
      validity: { notBeforeMs: Date.now() - 1000, notAfterMs: Date.now() + DAY_MS },
    })
    writeFileSync(join(folder, 'etc', 'cert.pem'), leaf.certificatePem)
    writeFileSync(join(folder, 'etc', 'controller.key'), leaf.privateKeyPem, { mode: 0o600 })
    expect(await init()).toMatchObject({ code: 0, stderr: '' })
    expect(etc('cert.pem')).toBe(leaf.certificatePem)
    expect(etc('controller.key')).toBe(leaf.privateKeyPem)
    // The secret is encrypted for the existing key.
    expect((await formedSecret(join(folder, 'etc'), 'a', 'clusterKey')).secret).toHaveLength(32)
  })

  test('refuses a CA that is not configured under identity.ca, or a key without its certificate, and succeeds after the correction', async () => {
    const { root } = await bringAuthority()
    writeFileSync(join(folder, 'etc', 'controller.key'), 'of the operator', { mode: 0o600 })
    const alone = await init()
    expect(alone.code).toBe(1)
    expect(alone.stderr).toContain('or move ')
    expect(etc('controller.key')).toBe('of the operator')
    rmSync(join(folder, 'etc', 'controller.key'))
    const validity = { notBeforeMs: Date.now() - 1000, notAfterMs: Date.now() + DAY_MS }
    const other = await createRootAuthority({ commonName: 'our root', validity })
    writeFileSync(join(folder, 'etc', 'ca.pem'), other.certificatePem)
    const refused = await init()
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/identity\.signer: .*signer\.pem: .*name an authority under/)
    expect(refused.stderr.trim().split('\n')).toHaveLength(1)
    expect(existsSync(join(folder, 'etc', '.forming'))).toBe(false)
    writeFileSync(join(folder, 'etc', 'ca.pem'), root.certificatePem)
    expect((await init()).code).toBe(0)
  })

  test('does not overwrite files of an interrupted attempt with an external CA', async () => {
    const { root } = await bringAuthority()
    writeFileSync(join(folder, 'etc', '.forming'), '')
    expect((await init()).code).toBe(0)
    rmSync(join(folder, 'etc', 'data'), { recursive: true })
    writeFileSync(join(folder, 'etc', '.forming'), 'with an authority that was supplied\n')
    writeFileSync(config, etc('config.yml').replace(/ +signer:\n.*\n.*\n/, ''))
    const without = await init()
    expect(without.stderr).toContain('already exists and stays unchanged')
    expect(etc('ca.pem')).toBe(root.certificatePem)
  })
})

describe('cluster init', () => {
  test('creates a controller that can start, using only command-line flags', async () => {
    const done = await init(...binds, '--id', 'a', '--cluster-name', 'prod.example.net', '--json')
    expect(done).toMatchObject({ code: 0, stderr: '' })
    const result = JSON.parse(done.stdout) as InitResult
    expect(result).toMatchObject({ id: 'a', trustDomain: 'prod.example.net', admin: 'admin' })
    const chain = parseCertificates(readFileSync(join(folder, 'etc', 'cert.pem'), 'utf8'))
    expect(leafControllerId(chain[0], 'prod.example.net')).toBe('a')
    checkCertificateChain(chain, parseCertificates(readFileSync(result.ca, 'utf8')), Date.now())
    expect(readDataIdentity(join(folder, 'etc', 'data'))).toMatchObject({
      nodeId: 'a',
      clusterId: result.clusterId,
    })
    expect((await run(['controller', 'check', config])).code).toBe(0)
  })

  test('writes keys and password so that only their owner can read them, and prints their paths', async () => {
    const { stdout } = await init(...binds)
    const rootKey = join(folder, 'etc', 'pki', 'root.key')
    const adminFile = join(folder, 'etc', 'admin.json')
    expect(stdout).toContain(`root key: ${rootKey}; move it offline`)
    expect(stdout).toContain(`the password is in ${adminFile}`)
    const admin = JSON.parse(readFileSync(adminFile, 'utf8')) as AdminFile
    expect(stdout).not.toContain(admin.password)
    for (const name of readdirSync(join(folder, 'etc'), { recursive: true }) as string[]) {
      const path = join(folder, 'etc', name)
      if (!statSync(path).isFile() || (statSync(path).mode & 0o077) === 0) continue
      const text = readFileSync(path, 'utf8')
      expect(text.includes('PRIVATE KEY') || text.includes(admin.password), name).toBe(false)
    }
  })

  test('reads the password from standard input, and does not write it to a file', async () => {
    const words = ['cluster', 'init', config, ...binds, '--admin', 'ada', '--password-file', '-']
    expect(await inputTo(words, 'correct horse\n')).toBe(0)
    for (const name of readdirSync(join(folder, 'etc'), { recursive: true }) as string[]) {
      const path = join(folder, 'etc', name)
      if (statSync(path).isFile()) expect(readFileSync(path).includes('correct horse')).toBe(false)
    }
    expect(existsSync(join(folder, 'etc', 'admin.json'))).toBe(false)
  })

  test('refuses a password that is too short, and a password file that other users can read, and leaves no files', async () => {
    const secret = join(folder, 'password')
    writeFileSync(secret, '1234567\n', { mode: 0o600 })
    const { stderr } = await init(...binds, '--password-file', secret)
    expect(stderr).toContain('password should be at least 8 chars long')
    expect(stderr).not.toContain('1234567')
    writeFileSync(secret, 'long enough\n')
    rmSync(secret)
    writeFileSync(secret, 'long enough\n', { mode: 0o644 })
    expect((await init(...binds, '--password-file', secret)).stderr).toContain('chmod 600')
    expect(existsSync(join(folder, 'etc'))).toBe(false)
  })

  test('does not replace the certificate of an existing controller, and reports the controller with one sentence', async () => {
    await init(...binds, '--id', 'a')
    const before = readFileSync(join(folder, 'etc', 'cert.pem'), 'utf8')
    const again = await init()
    expect(again).toMatchObject({ code: 1, stdout: '' })
    expect(again.stderr).toMatch(/belongs to controller a of cluster \S+ already and is ready/)
    expect(again.stderr.trim().split('\n')).toHaveLength(1)
    expect(readFileSync(join(folder, 'etc', 'cert.pem'), 'utf8')).toBe(before)
  })

  test('starts from the beginning if an earlier attempt was interrupted before it created the data folder', async () => {
    const [, bindApi = '', , bindRouter = '', , bindCluster = ''] = binds
    const flags = { id: 'a', bindApi, bindRouter, bindCluster }
    const planned = planConfig(config, flags, 'cut.internal')
    await expect(
      createCluster({
        controllers: [planned],
        adminName: 'admin',
        password: 'long enough',
        nowMs: Date.now(),
        beforeData: () => {
          throw new Error('the power went')
        },
      }),
    ).rejects.toThrow('the power went')
    expect(existsSync(join(folder, 'etc', 'data'))).toBe(false)
    const first = readFileSync(join(folder, 'etc', 'ca.pem'), 'utf8')
    expect(await init(...binds, '--id', 'a')).toMatchObject({ code: 0 })
    expect(readFileSync(join(folder, 'etc', 'ca.pem'), 'utf8')).not.toBe(first)
    expect((await run(['controller', 'check', config])).stderr).toBe('')
  })

  test('never overwrites a key that it did not create', async () => {
    mkdirSync(join(folder, 'etc', 'pki'), { recursive: true })
    writeFileSync(join(folder, 'etc', 'pki', 'root.key'), 'of another cluster')
    const done = await init(...binds)
    expect(done.code).toBe(1)
    expect(done.stderr).toContain('root.key already exists and stays unchanged')
    expect(readFileSync(join(folder, 'etc', 'pki', 'root.key'), 'utf8')).toBe('of another cluster')
    expect(existsSync(config)).toBe(false)
  })

  test('uses an existing configuration, and refuses a flag that contradicts it', async () => {
    mkdirSync(join(folder, 'etc'))
    const text = composeConfig({
      id: 'b',
      data: 'store',
      trustDomain: 'there.internal',
      meshBind: binds[5] ?? '',
      meshAdvertise: 'mesh.example.net:1480',
      routersBind: binds[3] ?? '',
      webBind: binds[1] ?? '',
      webAdvertise: '192.0.2.7:1280',
      seeds: [],
    })
    writeFileSync(config, `# my own words\n${text}`)
    const contradicted = await init('--id', 'c')
    expect(contradicted.code).toBe(2)
    expect(contradicted.stderr).toContain('exists with b, but --id is c')
    expect((await init('--id', 'b')).code).toBe(0)
    expect(readFileSync(config, 'utf8')).toContain('# my own words')
    const [leaf] = parseCertificates(readFileSync(join(folder, 'etc', 'cert.pem'), 'utf8'))
    expect(leaf.dnsNames).toEqual(['mesh.example.net'])
    expect(leaf.ipAddresses).toEqual(['192.0.2.7'])
    expect(readDataIdentity(join(folder, 'etc', 'store')).nodeId).toBe('b')
  })
})

test('names that YAML could read as numbers, null or comments can be used in a generated configuration, and adding seeds changes nothing else in the file', () => {
  const text = composeConfig({
    id: '0x1F',
    data: '/srv/a folder: with #marks',
    trustDomain: 'null',
    meshBind: '[::]:1480',
    meshAdvertise: '[2001:db8::1]:1480',
    routersBind: '[::]:1380',
    webBind: '[::]:1280',
    webAdvertise: '[2001:db8::1]:1280',
    seeds: [],
  })
  const loaded = parseControllerConfig('/etc/flotilla/config.yml', text, {})
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
  expect(loaded.config).toMatchObject({
    id: '0x1F',
    data: '/srv/a folder: with #marks',
    trustDomain: 'null',
  })
  const seeded = setConfigOptions(text, { 'cluster.seeds': ['ctrl1.example.net:1480'] })
  expect(seeded).toContain('ctrl1.example.net:1480')
  const unseeded = setConfigOptions(seeded, { 'cluster.seeds': [] })
  expect(unseeded.replace('  seeds: []\n', '')).toBe(text)
})
