import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'

import { sendToAdminSocket } from '../../src/cli/client/admin-socket.ts'
import { Problem } from '../../src/lib/problems.ts'
import type { ScheduledBackups } from '../../src/api/backups/backup-control.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { readDataIdentity } from '../../src/store/log/data-identity.ts'
import { composeConfig } from '../../src/config/controller/compose.ts'
import { createBackupControl } from '../../src/controller/backups/backup-control.ts'
import { BackedUp, newKeyPair } from '../backup/backup-fixture.ts'
import { TRUST_DOMAIN } from '../cluster/secrets-fixture.ts'
import { temporaryFolder } from '../store/support/folders.ts'
import { RecordedActions } from '../support/recorded-actions.ts'
import { sha256sum } from '../support/sha256sum.ts'
import { runHere } from './run-here.ts'
import { serveSocket } from './served-socket.ts'

// Goal: each command reports what it did, or states in one sentence what prevents it and changes
// nothing.

const source = await BackedUp.make()
const key = newKeyPair()
const bytes = await source.save({ publicPem: key.publicPem })

let dir = ''
let file = ''
let keyFile = ''
beforeEach(() => {
  dir = temporaryFolder()
  file = join(dir, 'a.backup')
  keyFile = join(dir, 'backup.key')
  writeFileSync(file, bytes, { mode: 0o600 })
  writeFileSync(keyFile, key.privatePem, { mode: 0o600 })
  writeFileSync(join(dir, 'backup.pem'), key.publicPem)
})

function snapshot(...words: readonly string[]) {
  return runHere(['cluster', 'snapshot', ...words])
}

/** Writes a configuration of ctrl1, optionally with the files of its identity. */
function configFor(hasIdentity: boolean): string {
  const folder = join(dir, 'etc')
  mkdirSync(folder)
  const config = join(folder, 'config.yml')
  writeFileSync(
    config,
    composeConfig({
      id: 'ctrl1',
      data: 'data',
      trustDomain: TRUST_DOMAIN,
      seeds: [],
      meshBind: '127.0.0.1:1480',
      meshAdvertise: '127.0.0.1:1480',
      routersBind: '127.0.0.1:1380',
      webBind: '127.0.0.1:1280',
      webAdvertise: '127.0.0.1:1280',
    }),
  )
  if (!hasIdentity) return config
  const { certificatePem, privateKeyPem } = source.cluster.member('ctrl1').leaf
  writeFileSync(join(folder, 'cert.pem'), certificatePem)
  writeFileSync(join(folder, 'controller.key'), privateKeyPem, { mode: 0o600 })
  writeFileSync(join(folder, 'ca.pem'), source.cluster.root.certificatePem)
  return config
}

test('every snapshot command with --key reports the fault if the key is a public key', async () => {
  const publicFile = join(dir, 'backup.pem')
  chmodSync(publicFile, 0o644)
  const config = configFor(true)
  for (const words of [
    ['verify', file],
    ['restore', file, config],
    ['diff', file, '--config', config],
  ]) {
    const { code, stderr } = await snapshot(...words, '--key', publicFile)
    expect([code, stderr]).toEqual([
      1,
      `flotilla: the key of the backup: ${publicFile} holds a public key and no private key; name the file with the private key\n`,
    ])
  }
})

/** Number of checks that succeed before one reports that the state must not be read. */
let isWrongAfter = Infinity

const backupOf = (body: object) =>
  ({ method: 'POST', path: '/fabric/v1/cluster/backup', body }) as const

interface Served extends AsyncDisposable {
  readonly unexpected: string[]
  readonly actions: RecordedActions
}

/** A controller that sends backups, at the admin socket of a folder. */
async function serving(from = source): Promise<Served> {
  const unexpected: string[] = []
  const actions = new RecordedActions()
  let asked = 0
  const refusal = () => ((asked += 1) > isWrongAfter ? 'NODE_QUARANTINED' : null)
  const backups = createBackupControl({ ...from.parts, refusal, actions, folder: () => null })
  const logger = {
    warn: () => undefined,
    error: (fields: Readonly<Record<string, unknown>>) => unexpected.push(String(fields['err'])),
  }
  const server = await serveSocket(dir, { backups, logger })
  return { unexpected, actions, [Symbol.asyncDispose]: () => server.close() }
}

test('snapshot save writes the backup of the controller, and never overwrites a file', async () => {
  await using served = await serving()
  const target = join(dir, 'b.backup')
  const words = ['save', target, '--data', dir, '--recipient', join(dir, 'backup.pem')]
  const saved = await snapshot(...words)
  expect(saved.code, saved.stderr).toBe(0)
  expect(saved.stdout).toMatch(
    /^saved cluster \S+ at index \d+ to .*b\.backup\n.*with secrets, encrypted\nSHA-256 [0-9a-f]{64}\n$/,
  )
  expect(statSync(target).mode & 0o777).toBe(0o600)
  expect(saved.stdout.slice(-65).trim()).toBe(sha256sum(target))
  const again = await snapshot(...words)
  expect(again).toMatchObject({
    code: 1,
    stderr: `flotilla: ${target} already exists; choose another file\n`,
  })
  expect((await snapshot('verify', target, '--key', keyFile)).code).toBe(0)
  expect(served.unexpected).toEqual([])
})

test('snapshot save refuses the certificate of a controller as recipient, because only its host could decrypt the backup', async () => {
  await using _served = await serving()
  const target = join(dir, 'b.backup')
  const own = join(dir, 'cert.pem')
  writeFileSync(own, source.cluster.member('ctrl1').leaf.certificatePem)
  const refused = await snapshot('save', target, '--data', dir, '--recipient', own)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toMatch(
    /the recipient has the key of controller ctrl1, so only the host of ctrl1 could decrypt the backup; name the public key/,
  )
  expect(existsSync(target)).toBe(false)
})

test('snapshot save writes secrets in plain text only if the user gives the option for this', async () => {
  await using _served = await serving()
  const target = join(dir, 'b.backup')
  const silent = await snapshot('save', target, '--data', dir)
  expect(silent.code).toBe(2)
  expect(silent.stderr).toMatch(
    /pass --recipient PUBLIC\.pem to encrypt it, --plaintext .* or --without-secrets/,
  )
  const both = await snapshot('save', target, '--data', dir, '--plaintext', '--recipient', 'x')
  expect(both.code).toBe(2)
  expect(existsSync(target)).toBe(false)
  expect((await snapshot('save', target, '--data', dir, '--without-secrets')).code).toBe(0)
  expect(readFileSync(target).includes('"secret"')).toBe(false)
  const plain = join(dir, 'c.backup')
  expect((await snapshot('save', plain, '--data', dir, '--plaintext', '--json')).code).toBe(0)
  expect(readFileSync(plain).includes('"secret"')).toBe(true)
  // The controller itself also refuses, from every caller, to write secrets in plaintext without
  // this option.
  await expect(sendToAdminSocket(dir, backupOf({ hasSecrets: true }))).rejects.toMatchObject({
    code: 'COULD_NOT_VALIDATE',
  })
})

test('snapshot save leaves no file if the state turns out to be inconsistent during the backup, and does not delay the next backup', async () => {
  await using served = await serving()
  const target = join(dir, 'b.backup')
  const words = ['save', target, '--data', dir, '--plaintext']
  isWrongAfter = 2
  const refused = await snapshot(...words)
  isWrongAfter = Infinity
  expect(refused.code).toBe(5)
  expect(refused.stderr).toMatch(/^flotilla: \S.*\n$/)
  expect(readdirSync(dir).filter((name) => name.includes('b.backup'))).toEqual([])
  expect((await snapshot(...words)).code).toBe(0)
  // The audit records the recipient, and whether the transfer was complete.
  const told = served.actions.all.map(({ outcome, reason }) => `${reason}: ${outcome}`)
  expect(told).toEqual(
    ['requested', 'TIMEOUT', 'requested', 'done'].map(
      (outcome) => `with secrets, unencrypted: ${outcome}`,
    ),
  )
})

test('snapshot save fails if the log cannot record the recipient of the backup, unless --stale is given', async () => {
  await using served = await serving()
  const target = join(dir, 'b.backup')
  served.actions.refusal = new Problem('CLUSTER_NO_LEADER')
  const refused = await snapshot('save', target, '--data', dir, '--plaintext')
  expect(refused.code).toBe(5)
  expect(refused.stderr).toMatch(/no leader|CLUSTER_NO_LEADER|leader/i)
  expect(existsSync(target)).toBe(false)
  expect((await snapshot('save', target, '--data', dir, '--plaintext', '--stale')).code).toBe(0)
})

test('snapshot save requires an option that selects the controller, and reports if that controller is not running', async () => {
  const target = join(dir, 'b.backup')
  expect((await snapshot('save', target, '--plaintext')).code).toBe(2)
  const away = await snapshot('save', target, '--data', dir, '--plaintext')
  expect(away).toMatchObject({ code: 5, stderr: `flotilla: no controller is running on ${dir}\n` })
  const unread = await snapshot('save', target, '--data', dir, '--recipient', join(dir, 'none'))
  expect(unread.code).toBe(2)
  expect(existsSync(target)).toBe(false)
})

test('snapshot verify lists the parts of a backup that it could check, and refuses a changed file or another checksum', async () => {
  const without = await snapshot('verify', file)
  expect(without).toMatchObject({ code: 0 })
  expect(without.stdout).toMatch(/is intact; its encrypted content was not checked.*pass --key/)
  const sha256 = sha256sum(file)
  const whole = await snapshot('verify', file, '--key', keyFile, '--sha256', sha256, '--json')
  expect(whole.code, whole.stderr).toBe(0)
  expect(JSON.parse(whole.stdout)).toMatchObject({ sha256, isWhole: true, isStateChecked: true })
  const other = await snapshot('verify', file, '--sha256', '0'.repeat(64))
  expect(other.code).toBe(1)
  expect(other.stderr).toMatch(/not that of --sha256/)
  // Releases before 0.3.0 printed the checksum at the end of the file.
  const former = bytes.subarray(-32).toString('hex')
  const noted = await snapshot('verify', file, '--sha256', former.toUpperCase())
  expect(noted).toMatchObject({ code: 0 })
  expect(noted.stdout).toContain(`SHA-256 ${sha256}`)
  const changed = Buffer.from(bytes)
  changed[bytes.length >> 1] = (changed[bytes.length >> 1] ?? 0) ^ 1
  writeFileSync(file, changed)
  const damaged = await snapshot('verify', file)
  expect(damaged.code).toBe(1)
  expect(damaged.stderr).toMatch(
    /^flotilla: .*a\.backup: frame \d+ of the backup is damaged; use another copy/,
  )
})

test('snapshot verify, list and diff report that a backup file is missing', async () => {
  const words = ['--config', configFor(false), '--key', keyFile]
  for (const verb of [['verify', '--key', keyFile], ['list'], ['diff', ...words]]) {
    const [name = '', ...more] = verb
    const done = await snapshot(name, join(dir, 'none.backup'), ...more)
    expect(done.code).toBe(1)
    expect(done.stderr).toMatch(/none\.backup does not exist; name a file written by cluster/)
  }
})

test('cluster backups lists the scheduled backups of the controller, or the reason why there are none', async () => {
  const words = ['cluster', 'backups', '--config', configFor(false)]
  const listing = async (found: ScheduledBackups): Promise<string> => {
    const backups = { take: () => Promise.reject(new Error('not asked')), list: async () => found }
    const server = await serveSocket(join(dir, 'etc', 'data'), { backups })
    try {
      return (await runHere(words)).stdout
    } finally {
      await server.close()
    }
  }
  mkdirSync(join(dir, 'etc', 'data'))
  const takenAtMs = Date.UTC(2026, 10, 23, 4)
  const name = 'flotilla-ctrl1-20261123T040000Z-812.backup'
  expect(await listing({ isScheduled: true, backups: [{ name, takenAtMs }] })).toBe(
    `file                                        taken\n${name}  2026-11-23T04:00:00Z\n`,
  )
  expect(await listing({ isScheduled: true, backups: [] })).toContain('none yet')
  expect(await listing({ isScheduled: false, backups: [] })).toContain('set backup.folder')
})

test('snapshot list shows every backup in a folder, complete or not, and no other file', async () => {
  writeFileSync(join(dir, 'cut.backup'), bytes.subarray(0, 10_000))
  writeFileSync(join(dir, 'notes.txt'), 'no backup')
  const told = await snapshot('list', dir)
  expect(told.code, told.stderr).toBe(0)
  expect(told.stdout).toMatch(/a\.backup .*ctrl1 .* yes +yes +complete$/m)
  expect(told.stdout).toMatch(/cut\.backup .*ctrl1 .* (the end of the backup is|a length).*$/m)
  expect(told.stdout).not.toMatch(/notes|backup\.key/)
  const { stdout } = await snapshot('list', dir, '--json')
  const [first] = JSON.parse(stdout) as { summary: { counts: Record<string, number> } }[]
  expect(first?.summary.counts['identity']).toBe(2)
  mkdirSync(join(dir, 'empty'))
  expect((await snapshot('list', join(dir, 'empty'))).stdout).toMatch(/^no backups in/)
})

test('snapshot diff shows which records a restore would restore, change and remove', async () => {
  const own = await BackedUp.make(2)
  writeFileSync(file, await own.save({ publicPem: key.publicPem }))
  await using served = await serving(own)
  const words = ['diff', file, '--data', dir, '--key', keyFile]
  await own.put('accessMark', 'i:u0', { movedAt: null, index: 1 })
  const same = await snapshot(...words)
  expect(same.code, same.stderr).toBe(0)
  expect(same.stdout).toMatch(/created +changed +deleted\napiSession +0 +0 +1\n$/)
  await own.put('service', 'later', { name: 'later', encryptionRequired: true })
  await own.patch('service', 's0', { name: 'renamed' })
  await own.remove('service', 's1')
  const told = await snapshot(...words)
  expect(told.stdout).toMatch(/^service +1 +1 +1$/m)
  const { changes } = JSON.parse((await snapshot(...words, '--json')).stdout) as {
    changes: { kind: string; ids: object }[]
  }
  expect(changes.find(({ kind }) => kind === 'service')?.ids).toEqual({
    created: ['s1'],
    changed: ['s0'],
    deleted: ['later'],
  })
  expect((await snapshot('diff', file, '--data', dir)).stderr).toMatch(/give --key/)
  expect(told.stdout).not.toMatch(/another cluster/)
  expect(served.unexpected).toEqual([])
})

test('snapshot restore creates a key for a controller that has none yet', async () => {
  const config = configFor(false)
  const restored = await snapshot('restore', file, config, '--key', keyFile)
  expect(restored.code, restored.stderr).toBe(0)
  expect(restored.stdout).toMatch(/ctrl1 is the first controller of cluster \S+, generation 2\n/)
  expect(restored.stdout).toMatch(/this controller has a new key/)
  expect(restored.stdout).toMatch(
    /^routers refuse the new key of this controller until you reset them.*\n.*systemctl stop .*; flotilla router reset .*; systemctl start /m,
  )
  const etc = join(dir, 'etc')
  expect(readdirSync(etc).sort()).toEqual([
    'ca.pem',
    'cert.pem',
    'config.yml',
    'controller.key',
    'data',
  ])
  expect(statSync(join(etc, 'controller.key')).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(etc, 'ca.pem'), 'utf8')).toBe(source.cluster.root.certificatePem)
  expect(readDataIdentity(join(etc, 'data'))).toMatchObject({ nodeId: 'ctrl1', generation: 2 })
  const again = await snapshot('restore', file, config, '--key', keyFile)
  expect(again.code).toBe(1)
  expect(again.stderr).toMatch(/data is not empty; move it away/)
})

test('snapshot restore starts from the beginning if an earlier attempt stopped before it created the data folder', async () => {
  const config = configFor(false)
  const etc = join(dir, 'etc')
  const words = ['restore', file, config, '--key', keyFile, '--json']
  const first = await snapshot(...words)
  expect(first.code, first.stderr).toBe(0)
  const wasCut = (...missing: readonly string[]): void => {
    for (const name of ['data', ...missing]) rmSync(join(etc, name), { recursive: true })
  }
  // The run was interrupted after or between the files of the identity; the marker shows that a
  // restore wrote them.
  wasCut()
  mkdirSync(join(etc, '.data.forming'))
  writeFileSync(join(etc, '.data.forming', 'IDENTITY'), 'half a folder')
  expect((await snapshot(...words)).code).toBe(0)
  expect(existsSync(join(etc, '.data.forming'))).toBe(false)
  wasCut('cert.pem')
  expect((await snapshot(...words)).stderr).toMatch(/already exists; restore certificate/)
  writeFileSync(join(etc, '.forming'), 'restored\n')
  const again = await snapshot(...words)
  expect(again.code, again.stderr).toBe(0)
  expect(JSON.parse(again.stdout)).toMatchObject({ isIdentityKept: false })
  expect(existsSync(join(etc, '.forming'))).toBe(false)
})

test('snapshot restore uses the certificate and key of the old controller unchanged', async () => {
  const config = configFor(true)
  const etc = join(dir, 'etc')
  const before = ['cert.pem', 'controller.key', 'ca.pem'].map((name) =>
    readFileSync(join(etc, name)),
  )
  const restored = await snapshot('restore', file, config, '--key', keyFile)
  expect(restored.code, restored.stderr).toBe(0)
  expect(restored.stdout).toMatch(
    /^ctrl1 is the first .*\n.*\n.*\n.* of the old controller are reused$/m,
  )
  expect(restored.stdout).toMatch(
    /^routers refuse controllers that join with a new key until you reset them/m,
  )
  const after = ['cert.pem', 'controller.key', 'ca.pem'].map((name) =>
    readFileSync(join(etc, name)),
  )
  expect(after).toEqual(before)
})

test('snapshot restore refuses a certificate of another network, and a certificate without a CA file', async () => {
  const config = configFor(true)
  const etc = join(dir, 'etc')
  const other = await BackedUp.make(0)
  const { certificatePem, privateKeyPem } = other.cluster.member('ctrl1').leaf
  writeFileSync(join(etc, 'cert.pem'), certificatePem)
  writeFileSync(join(etc, 'controller.key'), privateKeyPem, { mode: 0o600 })
  writeFileSync(join(etc, 'ca.pem'), other.cluster.root.certificatePem)
  const refused = await snapshot('restore', file, config, '--key', keyFile)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toMatch(/cert\.pem cannot be used \(.*\); restore certificate/)
  expect(parseCertificates(readFileSync(join(etc, 'cert.pem'), 'utf8'))).toHaveLength(
    parseCertificates(certificatePem).length,
  )
  rmSync(join(etc, 'ca.pem'))
  expect((await snapshot('restore', file, config, '--key', keyFile)).stderr).toMatch(
    /cert\.pem already exists; restore certificate/,
  )
  expect(existsSync(join(etc, 'data'))).toBe(false)
})

test('snapshot restore refuses another trust domain, another checksum, and a key that other users can read', async () => {
  const config = configFor(false)
  const noted = await snapshot(
    'restore',
    file,
    config,
    '--key',
    keyFile,
    '--sha256',
    'ab'.repeat(32),
  )
  expect(noted.code).toBe(1)
  expect(noted.stderr).toMatch(/not that of --sha256/)
  writeFileSync(keyFile, key.privatePem)
  chmodSync(keyFile, 0o644)
  expect((await snapshot('restore', file, config, '--key', keyFile)).stderr).toMatch(/chmod 600/)
  chmodSync(keyFile, 0o600)
  writeFileSync(config, readFileSync(config, 'utf8').replace(TRUST_DOMAIN, 'other.internal'))
  const domain = await snapshot('restore', file, config, '--key', keyFile)
  expect(domain.code).toBe(2)
  expect(domain.stderr).toMatch(/trustDomain other\.internal, the backup test\.internal/)
  expect(readdirSync(join(dir, 'etc'))).toEqual(['config.yml'])
})
