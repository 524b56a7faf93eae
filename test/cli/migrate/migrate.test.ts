import { spawnSync } from 'node:child_process'
import { generateKeyPairSync, hash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { readFileChunks } from '../../../src/backup/backup-files.ts'
import { loadBackup, type LoadedBackup } from '../../../src/backup/load-backup.ts'
import { MemoryStateStore } from '../../../src/store/state/memory-state-store.ts'
import {
  createRootAuthority,
  issueLeaf,
  LEAF_LIFETIME_MS,
  validityStartingAt,
} from '../../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../../src/pki/certificate.ts'
import { clientCertificate, newCa } from '../../support/authorities.ts'
import { boltzBoolean, boltzText } from '../../support/boltz-values.ts'
import { bucketOf, writeBolt } from '../../support/bolt-writer.ts'
import { databaseOf } from '../../migrate/sample-network.ts'
import { runHere } from '../run-here.ts'
import {
  type OpenZitiController,
  openZitiNetwork,
  type OpenZitiNetwork,
  writeController,
} from './openziti-folder.ts'

const nowMs = Date.now()
const trustDomain = 'acme.example'
const clusterId = '7b8f5506-d12f-499c-9137-98de3dc15b2b'
let network: OpenZitiNetwork
let base = ''
let folder = ''
let single: OpenZitiController

beforeAll(async () => {
  network = await openZitiNetwork(nowMs)
  base = mkdtempSync(join(tmpdir(), 'flotilla-migrate-'))
})
beforeEach(async () => {
  folder = mkdtempSync(join(base, 'case-'))
  single = await writeController({ folder, id: 'ctrl-one', port: 24_262, network, nowMs })
})
afterAll(() => {
  rmSync(base, { recursive: true, force: true })
})

const targets = () => ['--out', join(folder, 'net.backup'), '--configs', join(folder, 'configs')]

/** Names of everything in the folder. */
function files(): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
}

function edited(from: RegExp | string, to: string): void {
  writeFileSync(single.configuration, readFileSync(single.configuration, 'utf8').replace(from, to))
}

/** A section `identity` with certificate and key of another authority. */
async function otherIdentity(name: string): Promise<string> {
  const validity = validityStartingAt(nowMs, LEAF_LIFETIME_MS)
  const issuer = await createRootAuthority({ commonName: `root of ${name}`, validity })
  const leaf = await issueLeaf({
    issuer,
    commonName: name,
    uris: [],
    hosts: [`${name}.acme.test`],
    validity,
    usages: ['server'],
  })
  const write = (file: string, text: string) => {
    writeFileSync(join(folder, 'ctrl-one', file), text)
  }
  write(`${name}.pem`, leaf.certificatePem)
  write(`${name}.key`, leaf.privateKeyPem)
  write(`${name}-ca.pem`, issuer.certificatePem)
  return `{ cert: ${name}.pem, key: ${name}.key, ca: ${name}-ca.pem }`
}

/** Id of a process that has ended. */
function endedProcess(): number {
  return spawnSync(process.execPath, ['--version']).pid
}

async function backup(): Promise<LoadedBackup> {
  const bytes = readFileChunks(join(folder, 'net.backup'))
  return await loadBackup(bytes, new MemoryStateStore(), { privateKeyPem: null })
}

/** The sentence on stderr, without paths that are different in each run. */
async function failureOf(...words: readonly string[]): Promise<string> {
  const { code, stderr } = await runHere(words)
  const lines = stderr.trimEnd().split('\n')
  expect(lines).toHaveLength(1)
  return `${code}: ${(lines[0] ?? '').replaceAll(`${folder}/`, '')}`
}

describe('flotilla migrate check', () => {
  test('reports which records a migration would keep or change, and writes nothing', async () => {
    const before = files()
    const { code, stdout, stderr } = await runHere(['migrate', 'check', single.configuration])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('network of ctrl-one, trust domain ')
    expect(stdout).toMatch(/^identities +2 +2 +0 +0 +0$/m)
    expect(stdout).toContain(
      'configuration ctrl-one identity.server_cert: its certificate is issued again for the same key, as it has no SPIFFE id of this controller',
    )
    expect(stdout).toContain(
      'routers fabric router/1 (fabric), transit-1 (transit) certPem: the database has only',
    )
    expect(files()).toEqual(before)
  })

  test.each([
    ['identity.key', 'server.key', 'the configuration has one identity'],
    ['identity.key', 'server.key', 'the listener has its own identity'],
    ['web.identity.key', 'portal.key', 'the listener has its own identity'],
    ['identity.key', 'server.key', 'the server certificate has its own key'],
    ['identity.server_key', 'portal.key', 'the server certificate has its own key'],
  ])(
    'refuses %s (file %s) if the key does not match its certificate: %s',
    async (field, file, setup) => {
      const identity = await otherIdentity('portal')
      if (setup.startsWith('the listener')) {
        edited('  - name: all', `  - name: all\n    identity: ${identity}`)
      }
      if (setup.startsWith('the server')) {
        const more = ', server_cert: portal.pem, server_key: portal.key }'
        edited(/(?<=^identity: .*root\.pem) }/m, more)
      }
      const { privateKeyPem } = await newCa('foreign', nowMs)
      writeFileSync(join(folder, 'ctrl-one', file), privateKeyPem)
      expect(await failureOf('migrate', 'check', single.configuration)).toBe(
        `2: flotilla: ctrl-one/ctrl.yml: ${field}: the private key does not belong to the certificate`,
      )
    },
  )

  test('exits 1 and lists the records that a migration would lose', async () => {
    const { identities } = network.stores
    const admin = { ...identities?.['admin-1'], color: boltzText('red') }
    const stores = { ...network.stores, identities: { ...identities, 'admin-1': admin } }
    writeFileSync(single.database, writeBolt(databaseOf(stores)))
    const { code, stdout, stderr } = await runHere([
      'migrate',
      'check',
      single.configuration,
      '--json',
    ])
    const report = JSON.parse(stdout) as {
      readonly isWhole: boolean
      readonly stores: readonly { readonly store: string; readonly findings: readonly unknown[] }[]
    }
    expect(report.isWhole).toBe(false)
    expect(report.stores.find(({ store }) => store === 'identities')?.findings).toEqual([
      {
        kind: 'lost',
        store: 'identities',
        id: 'admin-1',
        name: 'Default Admin',
        field: 'color',
        reason: 'this field is unknown',
      },
    ])
    expect(code).toBe(1)
    expect(stderr).toContain('one value is lost in the move')
  })

  test('exits 1 if no CA in the configurations issued any certificate in the database', async () => {
    const other = await openZitiNetwork(nowMs)
    writeFileSync(single.database, writeBolt(databaseOf(other.stores)))
    const { code, stdout } = await runHere(['migrate', 'check', single.configuration])
    expect(stdout).toContain(
      'configuration ctrl-one edge.enrollment.signingCert: no authority in the configurations issued any of the 2 certificates of routers and identities in the database; name the configuration and the database of the same network',
    )
    expect(code).toBe(1)
  })

  test('lists each router whose certificate the network did not issue', async () => {
    const stranger = await newCa('a removed signer', nowMs)
    const certPem = boltzText(await clientCertificate(stranger, 'edge-1', nowMs))
    const { routers } = network.stores
    const edge = {
      ...routers?.['edge-1'],
      edge: bucketOf({ isVerified: boltzBoolean(true), certPem }),
    }
    const stores = { ...network.stores, routers: { ...routers, 'edge-1': edge } }
    writeFileSync(single.database, writeBolt(databaseOf(stores)))
    const { code, stdout } = await runHere(['migrate', 'check', single.configuration])
    expect(stdout).toContain(
      'routers edge-1 (edge) certPem: no authority in the configurations issued it; add the CA certificate of its issuer to identity.ca of the controllers, or enroll it again',
    )
    expect(code).toBe(0)
  })

  test('combines the enrollment tokens that each controller has created, and refuses databases of other networks', async () => {
    const members: OpenZitiController[] = []
    for (const [at, id] of ['ctrl1', 'ctrl2'].entries()) {
      const open = network.stores['enrollments']?.['router-open-1']
      const token = boltzText(`0000000${at}-0000-4000-8000-000000000000`)
      const stores = { ...network.stores, enrollments: { 'router-open-1': { ...open, token } } }
      const cluster = { clusterId, raftIndex: 149 - at, trustDomain }
      members.push(
        await writeController({ folder, id, port: 24_300 + at, network, nowMs, cluster, stores }),
      )
    }
    const paths = members.map(({ configuration }) => configuration)
    const { code, stdout } = await runHere(['migrate', 'check', ...paths])
    expect(code).toBe(0)
    expect(stdout).toContain('network of ctrl1, ctrl2, trust domain acme.example')
    expect(stdout).toContain(
      'enrollments router-open-1 token: another member made another token for it, which is carried as router-open-1.2',
    )
    expect(stdout).toMatch(/ctrl2\/ctrl-ha\.db ends at index 148 of the log and .* at 149/)
    expect(
      await failureOf(
        'migrate',
        'check',
        paths[0] ?? '',
        '--db',
        members[0]?.database ?? '',
        single.database,
      ),
    ).toBe(
      '1: flotilla: ctrl1/ctrl-ha.db and ctrl-one/ctrl.db are databases of different networks; name one database of each controller of one cluster',
    )
  })
})

describe('flotilla migrate', () => {
  test('writes a backup that can be restored, and a configuration with which the controller can start', async () => {
    const { code, stdout } = await runHere([
      'migrate',
      single.configuration,
      ...targets(),
      '--plaintext',
    ])
    expect(code).toBe(0)
    const { state, manifest } = await backup()
    expect([manifest.controllerId, manifest.members, manifest.hasSecrets]).toEqual([
      'ctrl-one',
      ['ctrl-one'],
      true,
    ])
    expect(state.get('identity', '-vKL94i-8')?.name).toBe('camera ünï')
    const sha256 = hash('sha256', readFileSync(join(folder, 'net.backup')))
    expect(stdout).toContain(
      'web.apis: the console needs edge-management and fabric at its address',
    )
    expect(stdout).toContain(`net.backup (SHA-256 ${sha256})`)
    const own = join(folder, 'configs', 'ctrl-one')
    const config = readFileSync(join(own, 'config.yml'), 'utf8')
    expect(parse(config)).toEqual({
      id: 'ctrl-one',
      data: 'data',
      trustDomain: manifest.trustDomain,
      identity: { cert: 'cert.pem', key: 'key.pem', ca: 'ca.pem' },
      cluster: { bind: '127.0.0.1:24462', advertise: 'localhost:24462' },
      routers: { bind: '127.0.0.1:24262' },
      web: [
        {
          bind: '127.0.0.1:24262',
          advertise: 'localhost:24262',
          apis: ['edge-management', 'edge-client'],
        },
      ],
      api: { sessionTimeoutMs: 2_700_000 },
      enrollment: { routerMinutes: 1440 },
    })
    expect(config).toMatch(/^# {3}healthChecks\.boltCheck\.interval$/m)
    expect(statSync(join(own, 'key.pem')).mode & 0o777).toBe(0o600)
    const [old] = parseCertificates(readFileSync(join(folder, 'ctrl-one', 'server.pem'), 'utf8'))
    const [leaf] = parseCertificates(readFileSync(join(own, 'cert.pem'), 'utf8'))
    expect(leaf.publicKeySha256).toEqual(old.publicKeySha256)
    expect(leaf.uris).toEqual([`spiffe://${manifest.trustDomain}/controller/ctrl-one`])
  })

  test('keeps the key of the certificate that HTTPS clients see if routers see another certificate', async () => {
    const [web, management] = [await otherIdentity('web'), await otherIdentity('management')]
    edited(
      '  - name: all',
      `  - bindPoints: [{ interface: '127.0.0.1:24263' }]
    identity: ${management}
    apis: [{ binding: edge-management }]
  - name: all
    identity: ${web}`,
    )
    const { stdout } = await runHere(['migrate', single.configuration, ...targets(), '--plaintext'])
    expect(stdout).toContain(
      'configuration ctrl-one web.identity.server_cert: its certificate is issued again for the same key, as HTTPS clients and routers got different ones, and get the same one here',
    )
    const read = (name: string) => readFileSync(join(folder, 'configs', 'ctrl-one', name), 'utf8')
    const old = (name: string) => readFileSync(join(folder, 'ctrl-one', name), 'utf8')
    const [leaf] = parseCertificates(read('cert.pem'))
    expect(leaf.dnsNames.toSorted()).toEqual(['localhost', 'web.acme.test'])
    expect(read('key.pem')).toBe(old('web.key'))
    const anchors = parseCertificates(read('ca.pem')).map(({ commonName }) => commonName)
    expect(anchors).toEqual(['Acme Root', 'signer of ctrl-one'])
    expect(stdout).toContain(
      'web.identity.ca: its authority "root of web" is not in identity.ca, and does not become one of the network',
    )
    expect(read('server-1.pem')).toBe(old('management.pem'))
    expect(read('server-1-key.pem')).toBe(old('management.key'))
    expect(existsSync(join(folder, 'configs', 'ctrl-one', 'server-2.pem'))).toBe(false)
  })

  test('prints how the other controllers of the network join', async () => {
    const cluster = { clusterId, raftIndex: 149, trustDomain }
    const paths: string[] = []
    for (const [at, id] of ['ctrl1', 'ctrl2'].entries()) {
      const port = 24_300 + at
      const made = await writeController({ folder, id, port, network, nowMs, cluster })
      paths.push(made.configuration)
    }
    const { stdout } = await runHere(['migrate', ...paths, ...targets(), '--plaintext'])
    const lines = stdout.trimEnd().replaceAll(`${folder}/`, '').split('\n')
    expect(lines.slice(-4)).toEqual([
      '  flotilla cluster snapshot restore net.backup configs/ctrl1/config.yml',
      '  flotilla controller run configs/ctrl1/config.yml',
      '  flotilla cluster invite --config configs/ctrl1/config.yml --out configs/ctrl2/ticket',
      '  flotilla cluster join configs/ctrl2/config.yml --ticket-file configs/ctrl2/ticket',
    ])
  })

  test('lists a server certificate that no listener can present', async () => {
    const signer = '{ server_cert: signer.pem, server_key: signer.key }'
    edited('key: server.key', `key: server.key, alt_server_certs: [${signer}]`)
    const { stdout } = await runHere(['migrate', single.configuration, ...targets(), '--plaintext'])
    expect(stdout).toMatch(
      /configuration ctrl-one alt_server_certs: no listener shows \S*signer\.pem until you replace it: it is a CA certificate and the only one in the file; /,
    )
  })

  test('uses the key of the server certificate if the certificate has a separate key', async () => {
    await otherIdentity('ctrl-one')
    edited(
      'cert: server.pem, key: server.key',
      'cert: ctrl-one.pem, key: ctrl-one.key, server_cert: server.pem, server_key: server.key',
    )
    await runHere(['migrate', single.configuration, ...targets(), '--plaintext'])
    const key = readFileSync(join(folder, 'configs', 'ctrl-one', 'key.pem'), 'utf8')
    expect(key).toBe(readFileSync(join(folder, 'ctrl-one', 'server.key'), 'utf8'))
  })

  test('writes a backup that is restored as a new cluster with the identity of the old controller', async () => {
    await runHere(['migrate', single.configuration, ...targets(), '--plaintext'])
    const config = join(folder, 'configs', 'ctrl-one', 'config.yml')
    const restore = ['cluster', 'snapshot', 'restore', join(folder, 'net.backup'), config, '--json']
    const { code, stdout, stderr } = await runHere(restore)
    expect([code, stderr]).toEqual([0, ''])
    expect(JSON.parse(stdout)).toMatchObject({
      id: 'ctrl-one',
      isIdentityKept: true,
      generation: 1,
    })
  })

  test('writes a backup that can be restored only with an existing configuration, so that a mistyped path creates no other controller', async () => {
    await runHere(['migrate', single.configuration, ...targets(), '--plaintext'])
    const before = files()
    const [backupFile, typo] = [
      join(folder, 'net.backup'),
      join(folder, 'configs', 'ctrl1', 'c.yml'),
    ]
    expect(await failureOf('cluster', 'snapshot', 'restore', backupFile, typo)).toBe(
      "2: flotilla: configs/ctrl1/c.yml does not exist; net.backup is a migrated network, whose controllers keep their ids and keys: name the configuration that 'flotilla migrate' wrote for ctrl-one",
    )
    expect(files()).toEqual(before)
  })

  test('encrypts the backup for a recipient, and prints no value of a configuration option that it does not know', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const recipient = join(folder, 'backup.pem')
    writeFileSync(recipient, publicKey.export({ type: 'spki', format: 'pem' }))
    const text = readFileSync(single.configuration, 'utf8')
    writeFileSync(single.configuration, `${text}events: { amqp: { url: 'amqp://u:hunter2@mq' } }\n`)
    const words = ['migrate', single.configuration, ...targets(), '--recipient', recipient]
    const { code, stdout, stderr } = await runHere(words)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain(`${join('configs', 'ctrl-one', 'config.yml')} --key PRIVATE.pem\n`)
    const config = readFileSync(join(folder, 'configs', 'ctrl-one', 'config.yml'), 'utf8')
    expect(config).toMatch(/^# {3}events\.amqp\.url$/m)
    expect(config + stdout).not.toContain('hunter2')
    const bytes = readFileSync(join(folder, 'net.backup'))
    expect(bytes.includes('camera')).toBe(false)
    const privateKeyPem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    const { state } = await loadBackup(
      readFileChunks(join(folder, 'net.backup')),
      new MemoryStateStore(),
      { privateKeyPem },
    )
    expect(state.get('identity', '-vKL94i-8')?.name).toBe('camera ünï')
  })

  test('writes nothing if records would be lost, unless the user accepts the losses', async () => {
    const stores = { ...network.stores, spells: { s1: { name: boltzText('s') } } }
    writeFileSync(single.database, writeBolt(databaseOf(stores)))
    const before = files()
    const words = ['migrate', single.configuration, ...targets(), '--plaintext']
    const refused = await runHere(words)
    expect([refused.code, files()]).toEqual([1, before])
    expect(refused.stdout).toContain('lost:\n  ziti/spells: this store is unknown')
    expect((await runHere([...words, '--accept-losses'])).code).toBe(0)
  })

  test('refuses to overwrite a backup or a folder of configurations', async () => {
    writeFileSync(join(folder, 'net.backup'), 'mine')
    const words = ['migrate', single.configuration, ...targets(), '--plaintext']
    expect(await failureOf(...words)).toMatch(/^1: flotilla: net\.backup /)
    rmSync(join(folder, 'net.backup'))
    mkdirSync(join(folder, 'configs'))
    writeFileSync(join(folder, 'configs', 'mine'), '')
    expect(await failureOf(...words)).toBe(
      '1: flotilla: configs is not empty; remove it if an interrupted run wrote it, or name another folder with --configs'
        .replace('configs is', `${join(folder, 'configs')} is`)
        .replaceAll(`${folder}/`, ''),
    )
    expect(existsSync(join(folder, 'net.backup'))).toBe(false)
  })

  test('prints the name of the missing folder for the backup', async () => {
    const words = [
      '--out',
      join(folder, 'gone', 'net.backup'),
      '--configs',
      join(folder, 'configs'),
    ]
    expect(await failureOf('migrate', single.configuration, ...words, '--plaintext')).toBe(
      `1: flotilla: the folder ${join(folder, 'gone')} does not exist; create it, or choose another location`.replaceAll(
        `${folder}/`,
        '',
      ),
    )
    expect(existsSync(join(folder, 'configs'))).toBe(false)
  })

  test('removes the files of an interrupted run, but not those of a run that is still in progress', async () => {
    const [ended, running] = [endedProcess(), process.ppid]
    for (const pid of [ended, running]) {
      mkdirSync(join(folder, `.configs.${pid}.partial`))
      writeFileSync(join(folder, `.net.backup.${pid}.partial`), 'half')
    }
    await runHere(['migrate', single.configuration, ...targets(), '--plaintext'])
    expect(files().filter((name) => name.endsWith('.partial'))).toEqual([
      `.configs.${running}.partial`,
      `.net.backup.${running}.partial`,
    ])
  })

  test('reports a certificate of --router-cert that does not belong to the named router, and refuses the name of a router that does not exist', async () => {
    const pem = join(folder, 'transit.pem')
    writeFileSync(pem, network.root.certificatePem)
    const words = ['migrate', 'check', single.configuration, '--router-cert', `transit-1=${pem}`]
    const { stdout } = await runHere(words)
    expect(stdout).toContain(
      'routers transit-1 (transit) fingerprint: the certificate of --router-cert is not the one of this router',
    )
    expect(
      await failureOf('migrate', 'check', single.configuration, '--router-cert', `gone=${pem}`),
    ).toBe('2: flotilla: --router-cert names the router gone, which does not exist')
  })

  test.each([
    ['a command without output files', [], /^2: flotilla: name the files to write: --out FILE/],
    [
      'a command that neither encrypts nor allows plaintext',
      ['--out', 'a', '--configs', 'b'],
      /^2: flotilla: the backup contains the keys/,
    ],
    [
      'a command with both --plaintext and --recipient',
      ['--out', 'a', '--configs', 'b', '--plaintext', '--recipient', 'c'],
      /^2: .*exclude each other/,
    ],
  ])('refuses %s', async (_title, words, expected) => {
    expect(await failureOf('migrate', single.configuration, ...words)).toMatch(expected)
  })
})

describe('An invalid input of flotilla migrate', () => {
  const checked = (): Promise<string> => failureOf('migrate', 'check', single.configuration)

  test('is reported in one sentence if the database is truncated, of another program, missing or a folder', async () => {
    truncateSync(single.database, statSync(single.database).size - 4096)
    expect(await checked()).toMatch(/^1: flotilla: ctrl-one\/ctrl\.db: the database is cut off: /)
    writeFileSync(single.database, 'SQLite format 3\0')
    expect(await checked()).toMatch(/^1: .*: it is not a database of an OpenZiti controller/)
    writeFileSync(single.database, writeBolt(bucketOf({ other: bucketOf({}) })))
    expect(await checked()).toMatch(/^1: .*: it is a bbolt file, and not one of an OpenZiti/)
    rmSync(single.database)
    expect(await checked()).toBe(
      '1: flotilla: ctrl-one/ctrl.db: there is no such file; check the path',
    )
    mkdirSync(single.database)
    expect(await checked()).toMatch(/^1: .*: it is not a regular file; name a database file$/)
  })

  test('is reported in one sentence if the same database is given twice', async () => {
    const { configuration, database } = single
    expect(await failureOf('migrate', 'check', configuration, '--db', database, database)).toBe(
      '1: flotilla: ctrl-one/ctrl.db is named twice; name one database of each controller',
    )
  })

  test.each([36, 49])(
    'is reported in one sentence if the database has the schema version %i',
    async (version) => {
      writeFileSync(single.database, writeBolt(databaseOf(network.stores, version)))
      expect(await checked()).toMatch(
        new RegExp(`^1: .*: its schema version is ${version}, .*; (upgrade|use)`),
      )
    },
  )

  test.each<readonly [string, RegExp | string, string, RegExp]>([
    ['invalid YAML', /^v: 3/, 'v: [', /^2: flotilla: ctrl-one\/ctrl\.yml:\d+: invalid YAML/],
    [
      'the format of another program',
      /^v: 3/,
      'v: 2',
      /is not the configuration of an OpenZiti controller/,
    ],
    [
      'the sections of a router',
      /^ctrl: .*/m,
      "ctrl: { endpoint: 'tls:localhost:24262' }",
      /^2: flotilla: ctrl-one\/ctrl\.yml is the configuration of a router; name that of a controller$/,
    ],
    [
      'an unset variable',
      'key: server.key',
      'key: $NO_SUCH_KEY',
      /ctrl\.yml:3: identity\.key: the environment variable NO_SUCH_KEY is not set$/,
    ],
    [
      'a missing key',
      'key: server.key',
      'key: gone.key',
      /identity\.key: ctrl-one\/gone\.key: there is no such file$/,
    ],
    [
      'a key that belongs to another certificate',
      'key: server.key',
      'key: signer.key',
      /identity\.key: the private key does not belong to the certificate$/,
    ],
    [
      'a key in a PKCS #11 token',
      'key: server.key',
      'key: pkcs11:token',
      /keys and certificates are read from files only/,
    ],
    [
      'a file without a certificate',
      'ca: root.pem',
      'ca: server.key',
      /ctrl-one\/server\.key: .*certificate/,
    ],
    [
      'no enrollment signer',
      /signingCert: .*/,
      'signingCert: {}',
      /edge\.enrollment\.signingCert\.cert is missing$/,
    ],
    ['no database', 'db: ctrl.db', '', /ctrl\.yml names no database; name it with --db$/],
    [
      'two listeners at one address',
      '  - name: all',
      "  - bindPoints: [{ interface: '127.0.0.1:24262' }]\n    apis: [{ binding: fabric }]\n  - name: all",
      /has no counterpart that can start: web\[1\]\.bind takes the same address as web\[0\]\.bind/,
    ],
    [
      'an address without a port',
      /interface: '[^']*'/,
      "interface: '127.0.0.1'",
      /"127\.0\.0\.1" is no address \(host:port\)$/,
    ],
  ])(
    'is reported in one sentence if the configuration has %s',
    async (_title, from, to, expected) => {
      edited(from, to)
      expect(await checked()).toMatch(expected)
    },
  )

  test('is reported in one sentence if the same controller is given twice', async () => {
    expect(
      await failureOf(
        'migrate',
        'check',
        single.configuration,
        single.configuration,
        '--db',
        single.database,
      ),
    ).toMatch(
      /^2: .*is a second configuration of the controller ctrl-one; name each controller once$/,
    )
  })
})
