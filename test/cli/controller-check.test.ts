import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { writePidFile } from '../../src/controller/admin/pid-file.ts'
import { runPreflight } from '../../src/controller/start/preflight.ts'
import { loadControllerConfig } from '../../src/config/controller/load.ts'
import type { ControllerConfig } from '../../src/config/controller/options.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import {
  type CertificateWithKey,
  issueControllerCertificate,
  issueLeaf,
  type LeafOptions,
  validityStartingAt,
} from '../../src/pki/authority/authority.ts'
import { lockDataFolder } from '../../src/store/folder/folder-lock.ts'
import { runHere } from './run-here.ts'
import { issuingAuthorityOf, layOut, run } from './support.ts'
import type { QuickstartPlan } from '../../src/cli/quickstart/plan.ts'

const DAY_MS = 24 * 60 * 60 * 1000

let laidOut = ''
let plan: QuickstartPlan
let folder = ''
let issuing: CertificateWithKey | null = null
/** A copy of ctrl1's folder that a test may damage. */
let ctrl1 = ''

beforeAll(async () => {
  laidOut = mkdtempSync(join(tmpdir(), 'flotilla-check-'))
  plan = await layOut(laidOut, 2)
  issuing = await issuingAuthorityOf(plan)
})
afterAll(() => {
  rmSync(laidOut, { recursive: true, force: true })
})
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'flotilla-check-'))
  ctrl1 = join(folder, 'ctrl1')
  cpSync(join(plan.dir, 'ctrl1'), ctrl1, { recursive: true })
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

function config(environment: Readonly<Record<string, string>> = {}): ControllerConfig {
  const loaded = loadControllerConfig(join(ctrl1, 'config.yml'), environment)
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
  return loaded.config
}

async function faultsOf(environment: Readonly<Record<string, string>> = {}): Promise<string[]> {
  const { faults, credentials } = await runPreflight(config(environment), Date.now())
  if (faults.length === 0) expect(credentials).not.toBeNull()
  return [...faults]
}

function issuer(): CertificateWithKey {
  return requirePresent(issuing, 'the issuing authority of the cluster laid out')
}

function install({ certificatePem, privateKeyPem }: CertificateWithKey): void {
  writeFileSync(join(ctrl1, 'cert.pem'), certificatePem)
  writeFileSync(join(ctrl1, 'controller.key'), privateKeyPem)
}

async function installLeaf(changes: Partial<LeafOptions>): Promise<void> {
  const { trustDomain } = config()
  install(
    await issueLeaf({
      issuer: issuer(),
      commonName: 'ctrl1',
      uris: [`spiffe://${trustDomain}/controller/ctrl1`],
      hosts: ['127.0.0.1'],
      validity: validityStartingAt(Date.now(), DAY_MS * 90),
      usages: ['server', 'client'],
      ...changes,
    }),
  )
}

/** The one reported fault; it must contain a remedy, after a semicolon or colon. */
async function onlyFault(environment: Readonly<Record<string, string>> = {}): Promise<string> {
  const faults = await faultsOf(environment)
  expect(faults).toHaveLength(1)
  const fault = requirePresent(faults[0], 'a fault')
  expect(fault).toMatch(/[;:] .+/)
  expect(fault).not.toContain('\n')
  return fault
}

describe('controller check --config-only', () => {
  test('checks the configuration file, and warns about missing files that backups need', async () => {
    const path = join(ctrl1, 'config.yml')
    for (const name of ['data', 'cert.pem', 'controller.key', 'ca.pem']) {
      rmSync(join(ctrl1, name), { recursive: true })
    }
    const check = ['controller', 'check', path, '--config-only']
    const done = await run(check)
    expect(done).toEqual({ code: 0, stdout: `${path}: the configuration is valid\n`, stderr: '' })
    const recipient = join(ctrl1, 'backup.pem')
    const backup = `backup: {folder: '${join(ctrl1, 'backups')}', recipient: '${recipient}'}\n`
    writeFileSync(path, `${readFileSync(path, 'utf8')}${backup}`)
    const warned = await run(check)
    expect(warned).toEqual({
      code: 0,
      stdout: `${path}: the configuration is valid, with 1 warning\n`,
      stderr: `flotilla: warning: backup.recipient: ${recipient}: does not exist; no backup will be made until it is corrected\n`,
    })
    expect(JSON.parse((await run([...check, '--json'])).stdout)).toMatchObject({
      ok: true,
      warnings: [expect.stringContaining('backup.recipient')],
    })
    writeFileSync(path, `${readFileSync(path, 'utf8')}logLevel: loud\n`)
    expect(await run(check)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/logLevel: expected one of/),
    })
  })
})

describe('Preflight (the checks before a controller starts)', () => {
  test('accepts a newly formed controller, and leaves no files behind', async () => {
    const before = readdirSync(ctrl1, { recursive: true }).sort()
    expect(await faultsOf()).toEqual([])
    expect(readdirSync(ctrl1, { recursive: true }).sort()).toEqual(before)
  })

  test('reports a port that is in use', async () => {
    const server = createServer()
    await new Promise<void>((done) => server.listen(plan.port, '127.0.0.1', done))
    const fault = await onlyFault()
    expect(fault).toContain(`web[0].bind: 127.0.0.1:${plan.port} is in use by another process`)
    await new Promise((done) => server.close(done))
  })

  test('reports an address that this host does not have', async () => {
    const fault = await onlyFault({ FLOTILLA_CLUSTER_BIND: '192.0.2.1:1480' })
    expect(fault).toContain('cluster.bind: 192.0.2.1:1480 is not an address of this host')
  })

  test('reports a private key that other users can read, and a missing key', async () => {
    chmodSync(join(ctrl1, 'controller.key'), 0o644)
    expect(await onlyFault()).toContain(`chmod 600 ${join(ctrl1, 'controller.key')}`)
    rmSync(join(ctrl1, 'controller.key'))
    expect(await onlyFault()).toContain('identity.key: ')
  })

  test('reports a CA file for key providers that is missing or contains no certificate', async () => {
    const file = join(ctrl1, 'signer-ca.pem')
    const environment = { FLOTILLA_API_SIGNER_CA: file }
    expect(await onlyFault(environment)).toContain(`api.signerCa: ${file}: file not found`)
    writeFileSync(file, 'no certificate')
    expect(await onlyFault(environment)).toContain(`api.signerCa: ${file}: `)
    cpSync(join(ctrl1, 'cert.pem'), file)
    expect(await faultsOf(environment)).toEqual([])
  })

  test('reports a key that does not match its certificate', async () => {
    cpSync(join(plan.dir, 'ctrl2', 'controller.key'), join(ctrl1, 'controller.key'))
    expect(await onlyFault()).toContain('does not belong to the certificate')
  })

  test('reports an expired certificate and a certificate that is not yet valid', async () => {
    const now = Date.now()
    await installLeaf({ validity: { notBeforeMs: now - 2 * DAY_MS, notAfterMs: now - DAY_MS } })
    expect(await onlyFault()).toContain('it expired at ')
    await installLeaf({ validity: { notBeforeMs: now + DAY_MS, notAfterMs: now + 2 * DAY_MS } })
    expect(await onlyFault()).toContain('it is not valid before ')
  })

  test('warns of a certificate that expires within a month', async () => {
    await installLeaf({ validity: validityStartingAt(Date.now(), DAY_MS * 10.5) })
    const { faults, warnings } = await runPreflight(config(), Date.now())
    expect(faults).toEqual([])
    expect(warnings.join()).toContain('expires in 10 days')
  })

  test('reports a certificate that belongs to another controller or contains two SPIFFE IDs', async () => {
    const { trustDomain } = config()
    const own = `spiffe://${trustDomain}/controller/ctrl1`
    await installLeaf({ commonName: 'ctrl2', uris: [`spiffe://${trustDomain}/controller/ctrl2`] })
    expect(await onlyFault()).toContain('it belongs to controller ctrl2, not to ctrl1')
    await installLeaf({ uris: [own, `${own}b`] })
    expect(await onlyFault()).toContain('exactly one SPIFFE id')
    await installLeaf({ uris: [`spiffe://${trustDomain}/identity/ctrl1`] })
    expect(await onlyFault()).toContain('is not a controller of')
  })

  test('only warns if the certificate lacks the advertised host, because a running controller can renew the certificate', async () => {
    await installLeaf({ hosts: ['other.example'] })
    const { faults, warnings } = await runPreflight(config(), Date.now())
    expect(faults).toEqual([])
    expect(warnings.join()).toContain('lacks 127.0.0.1 of web[0].advertise')
  })

  test('accepts a certificate for the advertised DNS name', async () => {
    const environment = { FLOTILLA_WEB_0_ADVERTISE: `localhost:${plan.port}` }
    const { faults, warnings } = await runPreflight(config(environment), Date.now())
    expect([faults, warnings]).toEqual([[], []])
  })

  test('warns of backups that cannot be written, and allows the start', async () => {
    const recipient = join(folder, 'backup.pem')
    const environment = {
      FLOTILLA_BACKUP_FOLDER: join(folder, 'backups'),
      FLOTILLA_BACKUP_RECIPIENT: recipient,
      FLOTILLA_BACKUP_HOOK: JSON.stringify([join(folder, 'no-hook'), 'offsite']),
    }
    const first = await runPreflight(config(environment), Date.now())
    expect(first.faults).toEqual([])
    expect(first.warnings.join('\n')).toMatch(
      /backup\.recipient: .*does not exist; no backup will be made.*\nbackup\.hook: .*ENOENT.*not brought elsewhere/,
    )
    writeFileSync(recipient, issuer().privateKeyPem)
    const second = await runPreflight(config(environment), Date.now())
    expect(second.warnings.join('\n')).toMatch(/the recipient is a private key/)
    writeFileSync(recipient, readFileSync(config().identity.cert))
    const own = await runPreflight(config(environment), Date.now())
    expect([own.faults, own.warnings.join('\n')]).toEqual([
      [],
      expect.stringContaining('the recipient has the key of controller ctrl1, so only the host'),
    ])
    writeFileSync(recipient, issuer().certificatePem)
    const third = await runPreflight(
      config({ ...environment, FLOTILLA_BACKUP_HOOK: '' }),
      Date.now(),
    )
    expect([third.faults, third.warnings]).toEqual([[], []])
    mkdirSync(join(folder, 'backups'))
    const noRoom = { FLOTILLA_BACKUP_HOOK: '', FLOTILLA_LOG_LOW_SPACE_BYTES: `${2 ** 40}` }
    const fourth = await runPreflight(config({ ...environment, ...noRoom }), Date.now())
    expect(fourth.warnings.join('\n')).toMatch(/backup\.folder: .*bytes left, .*; free space there/)
  })

  test('warns if the key of an external CA was left on the host', async () => {
    const environment = {
      FLOTILLA_IDENTITY_SIGNER_CERT: join(ctrl1, 'cert.pem'),
      FLOTILLA_IDENTITY_SIGNER_KEY: join(ctrl1, 'controller.key'),
    }
    const { faults, warnings } = await runPreflight(config(environment), Date.now())
    expect(faults).toEqual([])
    expect(warnings.join()).toContain('keep it offline')
  })

  test('reports a certificate that peers would refuse as a server or as a client certificate', async () => {
    await installLeaf({ usages: ['server'] })
    expect(await onlyFault()).toMatch(/extended key usage lacks clientAuth.*; issue one with/)
    await installLeaf({ usages: ['client'] })
    expect(await onlyFault()).toContain('extended key usage lacks serverAuth')
  })

  test('warns of a missing web certificate for browsers, and allows the start', async () => {
    const path = join(ctrl1, 'config.yml')
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, `${text}\nserverCertificates: [{ cert: web.pem, key: web.key }]\n`)
    const { faults, warnings } = await runPreflight(config(), Date.now())
    expect(faults).toEqual([])
    expect(warnings).toEqual([
      expect.stringMatching(/^serverCertificates\[0\]: .*web\.pem: file not found; until/),
    ])
  })

  test('reports a certificate whose CA is not trusted', async () => {
    const other = await layOut(folder, 1)
    cpSync(join(other.dir, 'ca.pem'), join(ctrl1, 'ca.pem'))
    expect(await onlyFault()).toContain('its chain does not lead to any of the 1 CA certificates')
  })

  test('reports a certificate file that contains no certificate', async () => {
    writeFileSync(join(ctrl1, 'cert.pem'), 'hello')
    expect(await onlyFault()).toContain('no PEM certificate found')
  })

  test.each([
    ['does not exist', (data: string) => rmSync(data, { recursive: true })],
    [
      'is empty',
      (data: string) => {
        rmSync(data, { recursive: true })
        mkdirSync(data)
      },
    ],
  ])(
    'reports missing cluster.seeds if the data folder %s and the configuration lists no seeds',
    async (what, lose) => {
      lose(join(ctrl1, 'data'))
      expect(await onlyFault({ FLOTILLA_CLUSTER_SEEDS: '' })).toBe(
        `data: ${join(ctrl1, 'data')} ${what}; name the data folder of this controller. If its disk is lost, set cluster.seeds to mesh addresses of other controllers: they admit it with an empty one and fill it. Neither cluster.seeds nor ${join(ctrl1, 'ctrl1.seeds')} names one`,
      )
      writeFileSync(join(ctrl1, 'ctrl1.seeds'), 'ctrl2.example.net:1480\n')
      expect(await faultsOf({ FLOTILLA_CLUSTER_SEEDS: '' })).toEqual([])
    },
  )

  test('accepts a missing data folder as a lost disk if there are seeds, and reports it otherwise', async () => {
    rmSync(join(ctrl1, 'data'), { recursive: true })
    const environment = { FLOTILLA_CLUSTER_SEEDS: '127.0.0.1:1481' }
    const { faults, warnings } = await runPreflight(config(environment), Date.now())
    expect(faults).toEqual([])
    expect(warnings.join()).toContain('requests re-admission from the seeds')
    expect(await faultsOf()).toHaveLength(1)
  })

  test('reports a data folder that is missing, a file, empty, or from another controller', async () => {
    const data = join(ctrl1, 'data')
    rmSync(data, { recursive: true })
    expect(await onlyFault()).toContain(`${data} does not exist`)
    writeFileSync(data, '')
    expect(await onlyFault()).toContain(`${data} is not a folder`)
    rmSync(data)
    mkdirSync(data)
    expect(await onlyFault()).toContain('is empty; name the data folder')
    rmSync(data, { recursive: true })
    cpSync(join(plan.dir, 'ctrl2', 'data'), data, { recursive: true })
    expect(await onlyFault()).toContain('belongs to controller ctrl2, but id is ctrl1')
  })

  test('reports a data folder that another process uses', async () => {
    const lock = await lockDataFolder(join(ctrl1, 'data'))
    expect(await onlyFault()).toContain('is in use by another process')
    await lock.release()
    expect(await faultsOf()).toEqual([])
  })

  test('tests neither the ports nor the log of a controller that already runs with the configuration', async () => {
    const path = join(ctrl1, 'config.yml')
    const server = createServer()
    await new Promise<void>((done) => server.listen(plan.port, '127.0.0.1', done))
    const lock = await lockDataFolder(join(ctrl1, 'data'))
    const check = ['controller', 'check', path]
    const stopped = await runHere(check)
    expect([stopped.code, stopped.stderr]).toEqual([1, expect.stringContaining('is in use by')])
    const words = ['-e', 'process.stdin.resume()', 'controller', 'run', path]
    const child = spawn(process.execPath, words, { stdio: ['pipe', 'ignore', 'ignore'] })
    try {
      await once(child, 'spawn')
      writePidFile(path, child.pid)
      const note = `ctrl1 is running with this configuration (process ${child.pid}), so its ports and its log were not tested`
      expect(await runHere(check)).toEqual({
        code: 0,
        stdout: `${path}: ctrl1 can start\nnote: ${note}\n`,
        stderr: '',
      })
      expect(JSON.parse((await runHere([...check, '--json'])).stdout)).toEqual({
        ok: true,
        faults: [],
        warnings: [],
        notes: [note],
      })
      rmSync(join(ctrl1, 'controller.key'))
      const broken = await runHere(check)
      expect([broken.code, broken.stderr]).toEqual([
        1,
        expect.stringMatching(/^flotilla: identity\.key: .*\n$/),
      ])
    } finally {
      child.kill('SIGKILL')
      await lock.release()
      await new Promise((done) => server.close(done))
    }
  })

  test('reports a disk with too little free space', async () => {
    const fault = await onlyFault({ FLOTILLA_LOG_LOW_SPACE_BYTES: String(2 ** 40) })
    expect(fault).toContain('less than log.lowSpaceBytes')
  })

  test('reports all faults in one run', async () => {
    rmSync(join(ctrl1, 'data'), { recursive: true })
    chmodSync(join(ctrl1, 'controller.key'), 0o666)
    await installLeaf({ commonName: 'x', hosts: [] })
    expect(await faultsOf()).toHaveLength(3)
  })
})

describe('flotilla controller check', () => {
  test('exits 0 and prints that the controller can start', async () => {
    const done = await run(['controller', 'check', join(ctrl1, 'config.yml')])
    expect(done).toEqual({
      code: 0,
      stdout: `${join(ctrl1, 'config.yml')}: ctrl1 can start\n`,
      stderr: '',
    })
  })

  test('exits 2 and prints every fault of the configuration on its own line, or as JSON', async () => {
    const path = join(ctrl1, 'config.yml')
    writeFileSync(path, 'id: 5\ncolour: blue\n')
    const done = await run(['controller', 'check', path])
    expect(done.code).toBe(2)
    expect(done.stderr).toContain(`${path}:2: colour: unknown key`)
    expect(done.stderr).toContain(`${path}:1: id: expected`)
    const json = await run(['controller', 'check', path, '--json'])
    expect(json.code).toBe(2)
    const report = JSON.parse(json.stdout) as { ok: boolean; faults: string[] }
    expect(report.ok).toBe(false)
    expect(report.faults.length).toBeGreaterThan(5)
  })

  test('exits 1 for a certificate of another controller, as a start does, and creates no file', async () => {
    const { trustDomain } = config()
    const validity = validityStartingAt(Date.now(), DAY_MS)
    const hosts = ['127.0.0.1']
    install(
      await issueControllerCertificate({ issuer: issuer(), trustDomain, id: 'b', hosts, validity }),
    )
    const before = readdirSync(ctrl1, { recursive: true }).sort()
    for (const verb of ['check', 'run']) {
      const done = await run(['controller', verb, join(ctrl1, 'config.yml')])
      expect(done.code, done.stderr).toBe(1)
      expect(done.stderr).toContain('it belongs to controller b, not to ctrl1')
      expect(readdirSync(ctrl1, { recursive: true }).sort()).toEqual(before)
    }
  })
})
