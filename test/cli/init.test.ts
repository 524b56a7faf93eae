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

import type { AdminFile } from '../../src/cli/admin-file.ts'
import { planConfig } from '../../src/cli/config-from-flags.ts'
import { formCluster } from '../../src/cli/form.ts'
import type { InitResult } from '../../src/cli/init.ts'
import { composeConfig, withSeeds } from '../../src/config/compose.ts'
import { parseControllerConfig } from '../../src/config/load.ts'
import {
  createIssuingAuthority,
  createRootAuthority,
  validityFrom,
} from '../../src/pki/authority.ts'
import { checkChain, leafControllerId, parseCertificates } from '../../src/pki/certificate.ts'
import { readIdentity } from '../../src/store/identity.ts'
import { formedSecret } from '../support/formed-secret.ts'
import { freePortBlock } from '../support/ports.ts'
import { flotilla, run } from './support.ts'

// Goal: one command makes a whole first controller, or leaves nothing that stands in the way of doing it again.

let folder = ''
let config = ''
let binds: string[] = []

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-init-'))
  config = join(folder, 'etc', 'config.yml')
  const port = await freePortBlock(1)
  binds = [
    ...['--bind-api', `127.0.0.1:${port}`, '--bind-router', `127.0.0.1:${port + 100}`],
    ...['--bind-cluster', `127.0.0.1:${port + 200}`],
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

describe('cluster init', () => {
  test('makes a controller that can start, from flags alone', async () => {
    const done = await init(...binds, '--id', 'a', '--cluster-name', 'prod.example.net', '--json')
    expect(done).toMatchObject({ code: 0, stderr: '' })
    const result = JSON.parse(done.stdout) as InitResult
    expect(result).toMatchObject({ id: 'a', trustDomain: 'prod.example.net', admin: 'admin' })
    const chain = parseCertificates(readFileSync(join(folder, 'etc', 'cert.pem'), 'utf8'))
    expect(leafControllerId(chain[0], 'prod.example.net')).toBe('a')
    checkChain(chain, parseCertificates(readFileSync(result.ca, 'utf8')), Date.now())
    expect(readIdentity(join(folder, 'etc', 'data'))).toMatchObject({
      nodeId: 'a',
      clusterId: result.clusterId,
    })
    expect((await run(['controller', 'check', config])).code).toBe(0)
  })

  test('keeps keys and password to their owner, and names where they are', async () => {
    const { stdout } = await init(...binds)
    const rootKey = join(folder, 'etc', 'pki', 'root.key')
    const adminFile = join(folder, 'etc', 'admin.json')
    expect(stdout).toContain(`root key: ${rootKey}; move it to a place that is offline`)
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

  test('takes the password from standard input, and writes it nowhere', async () => {
    const words = ['cluster', 'init', config, ...binds, '--admin', 'ada', '--password-file', '-']
    expect(await inputTo(words, 'correct horse\n')).toBe(0)
    for (const name of readdirSync(join(folder, 'etc'), { recursive: true }) as string[]) {
      const path = join(folder, 'etc', name)
      if (statSync(path).isFile()) expect(readFileSync(path).includes('correct horse')).toBe(false)
    }
    expect(existsSync(join(folder, 'etc', 'admin.json'))).toBe(false)
  })

  test('refuses a password that is too short, or open to others, and leaves nothing', async () => {
    const secret = join(folder, 'password')
    writeFileSync(secret, 'abc\n', { mode: 0o600 })
    expect((await init(...binds, '--password-file', secret)).stderr).toContain('has 3 characters')
    writeFileSync(secret, 'long enough\n')
    rmSync(secret)
    writeFileSync(secret, 'long enough\n', { mode: 0o644 })
    expect((await init(...binds, '--password-file', secret)).stderr).toContain('chmod 600')
    expect(existsSync(join(folder, 'etc'))).toBe(false)
  })

  test('leaves a formed controller as it is, with one sentence', async () => {
    await init(...binds, '--id', 'a')
    const before = readFileSync(join(folder, 'etc', 'cert.pem'), 'utf8')
    const again = await init()
    expect(again).toMatchObject({ code: 1, stdout: '' })
    expect(again.stderr).toMatch(/belongs to controller a of cluster \S+ already and is ready/)
    expect(again.stderr.trim().split('\n')).toHaveLength(1)
    expect(readFileSync(join(folder, 'etc', 'cert.pem'), 'utf8')).toBe(before)
  })

  test('a forming that was cut off before its data folder is made anew by the same command', async () => {
    const planned = planConfig(config, { id: 'a', bindApi: binds[1] ?? '' }, 'cut.internal')
    await expect(
      formCluster({
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
    expect(await init('--id', 'a')).toMatchObject({ code: 0 })
    expect(readFileSync(join(folder, 'etc', 'ca.pem'), 'utf8')).not.toBe(first)
    expect((await run(['controller', 'check', config])).stderr).toBe('')
  })

  test('never writes over a key that it did not make', async () => {
    mkdirSync(join(folder, 'etc', 'pki'), { recursive: true })
    writeFileSync(join(folder, 'etc', 'pki', 'root.key'), 'of another cluster')
    const done = await init(...binds)
    expect(done.code).toBe(1)
    expect(done.stderr).toContain('root.key exists already and is left as it is')
    expect(readFileSync(join(folder, 'etc', 'pki', 'root.key'), 'utf8')).toBe('of another cluster')
    expect(existsSync(config)).toBe(false)
  })

  test("forms with an operator's own authority, makes no root, and leaves their files as they are", async () => {
    const validity = validityFrom(Date.now(), 24 * 60 * 60 * 1000)
    const root = await createRootAuthority({ commonName: 'our root', validity })
    const issuing = await createIssuingAuthority({ commonName: 'our issuing', root, validity })
    const { text } = planConfig(config, { id: 'a', bindApi: binds[1] ?? '' }, 'ours.internal')
    mkdirSync(join(folder, 'etc'))
    writeFileSync(
      config,
      text.replace('identity:', 'identity:\n  signer: { cert: signer.pem, key: signer.key }'),
    )
    const write = (name: string, content: string): void => {
      writeFileSync(join(folder, 'etc', name), content, { mode: 0o600 })
    }
    write('ca.pem', root.certificatePem)
    write('signer.pem', root.certificatePem)
    write('signer.key', issuing.privateKeyPem)
    expect((await init()).stderr).toContain('signer.pem')
    expect(existsSync(join(folder, 'etc', 'data'))).toBe(false)
    write('signer.pem', issuing.certificatePem)
    const done = await init('--json')
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(done.stdout)).toMatchObject({ rootKey: null })
    expect(existsSync(join(folder, 'etc', 'pki'))).toBe(false)
    expect(readFileSync(join(folder, 'etc', 'ca.pem'), 'utf8')).toBe(root.certificatePem)
    const chain = parseCertificates(readFileSync(join(folder, 'etc', 'cert.pem'), 'utf8'))
    checkChain(chain, parseCertificates(root.certificatePem), Date.now())
    const held = await formedSecret(join(folder, 'etc'), 'a', 'issuingAuthority')
    expect(Buffer.from(held.secret).toString()).toBe(issuing.privateKeyPem)
  })

  test('follows a configuration that is there, and refuses a flag that says otherwise', async () => {
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
    expect(contradicted.stderr).toContain('says b where --id says c')
    expect((await init('--id', 'b')).code).toBe(0)
    expect(readFileSync(config, 'utf8')).toContain('# my own words')
    const [leaf] = parseCertificates(readFileSync(join(folder, 'etc', 'cert.pem'), 'utf8'))
    expect(leaf.dnsNames).toEqual(['mesh.example.net'])
    expect(leaf.ipAddresses).toEqual(['192.0.2.7'])
    expect(readIdentity(join(folder, 'etc', 'store')).nodeId).toBe('b')
  })
})

test('a composed configuration loads, whatever its names are, and seeds change nothing else in it', () => {
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
  const seeded = withSeeds(text, ['ctrl1.example.net:1480'])
  expect(seeded).toContain('ctrl1.example.net:1480')
  expect(withSeeds(seeded, [])).toContain('seeds: []')
  expect(seeded.split('\n')[0]).toBe(text.split('\n')[0])
})
