import { beforeAll, describe, expect, test } from 'vitest'

import { convertDatabase } from '../../src/migrate/database-conversion.ts'
import { MemorySource } from '../../src/migrate/bolt/byte-source.ts'
import { OpenZitiDatabase } from '../../src/migrate/database.ts'
import { MigrationReport } from '../../src/migrate/report.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { decryptFactorSecrets } from '../../src/pki/secrets/factor-secrets.ts'
import { decodeBase32 } from '../../src/pki/secrets/totp.ts'
import type { KindName } from '../../src/entities/kind-records.ts'
import type { State } from '../../src/fsm/records/state.ts'
import { IntegrityScan } from '../../src/fsm/cluster/integrity-scan.ts'
import { clientCertificate, newCa } from '../support/authorities.ts'
import {
  boltzBoolean,
  boltzInt32,
  boltzInt64,
  boltzSet,
  boltzText,
  boltzTime,
} from '../support/boltz-values.ts'
import { bucketOf, writeBolt } from '../support/bolt-writer.ts'
import {
  CREATED,
  databaseOf,
  type SampleCertificates,
  sampleStores,
  type SampleStores,
  sha1Of,
  type StoredFields,
  UPDATED,
} from './sample-network.ts'

const NOW = Date.parse('2026-03-03T00:00:00Z')
const factorKey = new Uint8Array(32).fill(7)
let pem: SampleCertificates
let networkPem = ''

beforeAll(async () => {
  const [network, partner] = [await newCa('network', NOW), await newCa('partner', NOW)]
  networkPem = network.certificatePem
  pem = {
    leafPem: await clientCertificate(network, 'edge-1', NOW),
    caPem: partner.certificatePem,
    partnerPem: await clientCertificate(partner, 'partner 1', NOW),
  }
})

interface Converted {
  readonly state: State
  readonly report: MigrationReport
}

function convert(stores: SampleStores, version = 48): Converted {
  const source = new MemorySource(writeBolt(databaseOf(stores, version)))
  const database = new OpenZitiDatabase(source, () => undefined)
  const report = new MigrationReport()
  const state = convertDatabase(database, {
    nowMs: NOW,
    clusterId: 'cluster-1',
    factorKey,
    routerCertificates: new Map(),
    controllerHosts: new Set(),
    networkAuthorities: parseCertificates(networkPem),
    report,
  })
  return { state, report }
}

/** The sample network with fields of one record replaced. */
function withFields(store: string, id: string, fields: StoredFields): SampleStores {
  const sample = sampleStores(pem)
  return { ...sample, [store]: { ...sample[store], [id]: { ...sample[store]?.[id], ...fields } } }
}

/** Findings of a conversion as `kind store id field: reason`. */
function findings({ report }: Converted): string[] {
  return report.stores.flatMap(({ findings: found }) =>
    found.map(({ kind, store, id, field, reason }) => `${kind} ${store} ${id} ${field}: ${reason}`),
  )
}

/** Findings that the sample network does not cause. */
function newFindings(stores: SampleStores, version?: number): string[] {
  const usual = new Set(findings(convert(sampleStores(pem))))
  return findings(convert(stores, version)).filter((one) => !usual.has(one))
}

function fieldsOf({ state }: Converted, kind: KindName, id: string): Record<string, unknown> {
  const {
    id: _id,
    createdAt: _at,
    updatedAt: _to,
    revision: _by,
    ...fields
  } = {
    ...state.inTable(kind, id),
  }
  return fields
}

describe('A converted OpenZiti network', () => {
  test('is complete, except for differences that the report lists', () => {
    const converted = convert(sampleStores(pem))
    expect(
      converted.report.stores.map(({ store, records, carried, counts }) => [
        store,
        records,
        carried,
        counts.lost,
      ]),
    ).toEqual([
      ['apiSessions', 1, 0, 0],
      ['authPolicies', 2, 2, 0],
      ['authenticators', 3, 3, 0],
      ['cas', 1, 1, 0],
      ['configTypes', 1, 1, 0],
      ['configs', 1, 1, 0],
      ['edgeRouterPolicies', 1, 1, 0],
      ['enrollments', 2, 2, 0],
      ['externalJwtSigners', 1, 1, 0],
      ['identities', 2, 2, 0],
      ['mfas', 1, 1, 0],
      ['postureChecks', 3, 3, 0],
      ['routers', 4, 4, 0],
      ['serviceEdgeRouterPolicies', 1, 1, 0],
      ['servicePolicies', 1, 1, 0],
      ['services', 2, 2, 0],
      ['terminators', 3, 2, 0],
    ])
    const without =
      'the database has only its SHA-1; the first connection with the certificate stores it'
    expect(findings(converted)).toEqual([
      'changed apiSessions  : all sessions end; clients log in again by themselves, people in browsers by hand',
      'decide enrollments open-1 token: the restore withdraws it, because its identity has rights; create a new enrollment after the move',
      `changed routers fabric router/1 certPem: ${without}`,
      `changed routers transit-1 certPem: ${without}`,
      'changed terminators hosted-1 : its host binds again and gets a new one',
    ])
  })

  test('has consistent records, including those that exist in every Flotilla network', () => {
    const { state } = convert(sampleStores(pem))
    const scan = new IntegrityScan(state)
    while (scan.step());
    expect(scan.findings).toEqual([])
    expect([...state.table('identityType').ids].sort()).toEqual(
      ['Default', 'Device', 'Router', 'Service', 'User'].sort(),
    )
    expect(state.table('postureCheckType').ids.size).toBe(5)
    expect(state.table('configType').ids.size).toBeGreaterThan(5)
  })

  test('keeps ids, times and all fields of identities', () => {
    const converted = convert(sampleStores(pem))
    const record = converted.state.inTable('identity', '-vKL94i-8')
    expect(record?.createdAt).toBe(Date.parse(CREATED) + 123)
    expect(record?.updatedAt).toBe(Date.parse(UPDATED))
    expect(fieldsOf(converted, 'identity', '-vKL94i-8')).toEqual({
      name: 'camera ünï',
      lastSeenAt: null,
      typeId: 'Device',
      isAdmin: false,
      isDefaultAdmin: false,
      authPolicyId: 'strict',
      externalId: 'ext-7',
      roleAttributes: ['Zebra', 'apple', 'blue'],
      roleAttributesExpireAt: {},
      roleAttributeEndsAt: null,
      appData: { nested: { a: [1, 'x'] } },
      defaultHostingCost: 11,
      defaultHostingPrecedence: 'required',
      serviceHostingCosts: { web: 5 },
      serviceHostingPrecedences: { web: 'failed' },
      permissions: ['service.read'],
      disabledAt: Date.parse('2026-03-02T00:00:00Z'),
      disabledUntil: Date.parse('2026-04-02T00:00:00Z'),
      envInfo: { arch: 'amd64' },
      sdkInfo: { version: 'v2.0.0' },
      tags: { floor: 3, lab: true, note: null },
    })
    expect(fieldsOf(converted, 'serviceConfig', '-vKL94i-8:web:acme.v1')).toEqual({
      identityId: '-vKL94i-8',
      serviceId: 'web',
      configId: 'alt',
      holder: '-vKL94i-8:web',
      tags: {},
    })
  })

  test('keeps passwords, certificates and MFA enrollments', () => {
    const { state } = convert(sampleStores(pem))
    expect(state.get('authenticator', 'password-1')?.passwordHash).toBe(
      '$argon2id$v=19$m=3072,t=1,p=4$/LCAkV06tg98wA$0IXFKtiJ+IS52fLXyuXJdgH9os0sciP5AnLtG6jWJTI',
    )
    const leaf = state.get('authenticator', 'certificate-1')
    expect([leaf?.fingerprint, leaf?.caId, leaf?.publicKeyPrint?.length]).toEqual([
      sha1Of(pem.leafPem),
      '',
      64,
    ])
    expect(state.get('authenticator', 'partner-1')?.caId).toBe('ca-1')
    const mfa = state.get('mfa', '-vKL94i-8')
    expect(mfa).toBeDefined()
    if (mfa === undefined) return
    const { identityId, secretId, codesId, sealed } = mfa
    const context = { clusterId: 'cluster-1', identityId, secretId, codesId }
    expect(decryptFactorSecrets(factorKey, sealed, context)).toEqual({
      secret: decodeBase32('3WVOILVLEVIRJ22B'),
      recoveryCodes: ['ABCDEF', 'Q2W3E4'],
    })
  })

  test('keeps routers with their names, and terminators that an operator created', () => {
    const converted = convert(sampleStores(pem))
    const { certPem, ...edge } = fieldsOf(converted, 'router', 'edge-1')
    expect(sha1Of(String(certPem))).toBe(sha1Of(pem.leafPem))
    expect(edge).toMatchObject({
      name: 'edge',
      cost: 3,
      noTraversal: true,
      isEdge: true,
      isTransit: false,
      isVerified: true,
      isTunnelerEnabled: true,
      fingerprint: sha1Of(pem.leafPem),
      ctrlChanListeners: { 'tls:host:1': ['default'] },
      roleAttributes: ['public'],
      appData: { my: 'data' },
    })
    expect(fieldsOf(converted, 'router', 'transit-1')).toMatchObject({
      isTransit: true,
      isVerified: true,
      fingerprint: 'aa'.repeat(20),
      adoptableFingerprint: 'aa'.repeat(20),
      certPem: null,
    })
    expect(fieldsOf(converted, 'router', 'fabric router/1')).toMatchObject({
      isEdge: false,
      isTransit: false,
      isVerified: true,
    })
    expect(fieldsOf(converted, 'terminator', 'static-1')).toEqual({
      serviceId: 'web',
      routerId: 'edge-1',
      binding: 'transport',
      address: 'tcp:localhost:80',
      cost: 7,
      precedence: 'required',
      instanceId: 'one',
      instanceSecret: Buffer.from('secret-1').toString('base64'),
      hostId: '',
      sourceCtrl: 'ctrl-1',
      peerData: { '1003': Buffer.from('key').toString('base64') },
      isSystem: false,
      isFabricOnly: false,
      tags: {},
    })
  })

  test('keeps terminators hosted by router tunnelers, and omits terminators hosted by clients of routers', () => {
    const { state } = convert(sampleStores(pem))
    expect(state.inTable('terminator', 'hosted-2')).toMatchObject({
      binding: 'tunnel',
      hostId: 'edge-1',
      isSystem: true,
    })
    expect(state.inTable('terminator', 'hosted-1')).toBeUndefined()
  })

  test('keeps services, configs, policies and posture checks unchanged', () => {
    const converted = convert(sampleStores(pem))
    expect(fieldsOf(converted, 'service', 'web')).toEqual({
      name: 'web',
      terminatorStrategy: 'sticky',
      maxIdleTimeMillis: 90_001,
      encryptionRequired: true,
      isFabricOnly: false,
      roleAttributes: ['http'],
      configs: ['alt'],
      tags: {},
    })
    expect(fieldsOf(converted, 'config', 'alt')['data']).toEqual({ port: 80, hosts: ['a', 'b'] })
    expect(fieldsOf(converted, 'servicePolicy', 'dial-1')).toMatchObject({
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: ['#all'],
      serviceRoles: ['@web'],
      postureCheckRoles: ['@os-1'],
    })
    expect(fieldsOf(converted, 'postureCheck', 'os-1')['operatingSystems']).toEqual([
      { type: 'Linux', versions: ['>=6.0.0'] },
    ])
    expect(fieldsOf(converted, 'postureCheck', 'processes-1')['processes']).toEqual([
      { osType: 'Linux', path: '/usr/bin/av', hashes: ['ab'], signerFingerprints: [] },
    ])
    expect(fieldsOf(converted, 'postureCheck', 'mfa-1')['timeoutSeconds']).toBe(-1)
  })

  test('has fabric-only services for those services that OpenZiti before 2.1 stored without an edge section', () => {
    const edge = bucketOf({
      name: boltzText('edge'),
      roleAttributes: boltzSet('old'),
      encryptionRequired: boltzBoolean(false),
    })
    const name = boltzText
    const { state, report } = convert(
      { services: { edge: { name: name('edge'), edge }, fabric: { name: name('fabric') } } },
      41,
    )
    expect(report.count('lost')).toBe(0)
    expect(state.inTable('service', 'edge')).toMatchObject({
      isFabricOnly: false,
      encryptionRequired: false,
      roleAttributes: ['old'],
    })
    expect(state.inTable('service', 'fabric')?.isFabricOnly).toBe(true)
  })

  test.each([
    [41, 'email', '/email'],
    [41, 'https://acme/~id', '/https:~1~1acme~1~0id'],
    [44, 'email', '/email'],
    [44, '/a/b', '/a/b'],
  ])(
    'has, for an external JWT claim of schema %i with the stored text %s, the JSON pointer %s',
    (version, stored, pointer) => {
      const { state } = convert(
        withFields('externalJwtSigners', 'idp-1', { claimsProperty: boltzText(stored) }),
        version,
      )
      expect(state.get('externalJwtSigner', 'idp-1')?.claimsProperty).toBe(pointer)
    },
  )

  test('does not assign a certificate to a third-party CA that the certificate names but that did not sign it', async () => {
    const impostor = await newCa('partner', NOW)
    const partnerPem = await clientCertificate(impostor, 'partner 1', NOW)
    const { state } = convert(
      withFields('authenticators', 'partner-1', {
        certPem: boltzText(partnerPem),
        certFingerprint: boltzText(sha1Of(partnerPem)),
      }),
    )
    expect(state.get('authenticator', 'partner-1')).toMatchObject({
      fingerprint: sha1Of(partnerPem),
      caId: '',
    })
  })
})

describe('The report of a migration', () => {
  test.each([
    [
      'identities',
      'admin-1',
      { color: boltzText('red') },
      'lost identities admin-1 color: this field is unknown',
    ],
    [
      'identities',
      'admin-1',
      { name: boltzInt32(4) },
      'lost identities admin-1 name: it is no value of type text',
    ],
    [
      'identities',
      'admin-1',
      { name: Buffer.from([5, 0xff]) },
      'lost identities admin-1 name: it is no value of type text',
    ],
    [
      'identities',
      'admin-1',
      { createdAt: Buffer.from([6, 1, 2]) },
      'lost identities admin-1 createdAt: it is no value of type time',
    ],
    [
      'identities',
      'admin-1',
      { roleAttributes: boltzText('a') },
      'lost identities admin-1 roleAttributes: it is a value and no bucket',
    ],
    [
      'identities',
      'admin-1',
      { isAdmin: bucketOf({}) },
      'lost identities admin-1 isAdmin: it is no value of type boolean',
    ],
    [
      'authenticators',
      'certificate-1',
      { certPem: boltzText('') },
      'changed authenticators certificate-1 certPem: the database has only its SHA-1; the first log-in stores it if the network issued it, and a certificate of another CA must enroll again',
    ],
    [
      'authenticators',
      'certificate-1',
      { certPem: boltzText(''), certFingerprint: boltzText('00') },
      'lost authenticators certificate-1 certPem: it has neither a certificate nor the SHA-1 of one',
    ],
    [
      'routers',
      'transit-1',
      { fingerprint: boltzText('00') },
      'decide routers transit-1 fingerprint: it is no SHA-1 of a certificate, so the router cannot connect; enroll it again',
    ],
    [
      'authenticators',
      'certificate-1',
      { certPem: boltzText('x') },
      'lost authenticators certificate-1 certPem: it is no readable certificate',
    ],
    [
      'authenticators',
      'certificate-1',
      { certFingerprint: boltzText('00') },
      'changed authenticators certificate-1 certFingerprint: it was not that of certPem',
    ],
    [
      'authenticators',
      'password-1',
      { updbPassword: boltzText('short') },
      'lost authenticators password-1 updbPassword: user name, hash or salt are not those of a password',
    ],
    [
      'authenticators',
      'password-1',
      { updbUsername: boltzText('abc') },
      'decide authenticators password-1 updbUsername: log-ins need 4 to 100 characters; change the name afterwards',
    ],
    [
      'services',
      'web',
      { name: boltzText('n'.repeat(600)) },
      'decide services web name: it has more than 512 characters; changes of this record are refused until it is corrected',
    ],
    [
      'services',
      'web',
      { tags: bucketOf({ t: boltzText('n'.repeat(9000)) }) },
      'decide services web tags: tags should take at most 8192 bytes as JSON; changes of this record are refused until it is corrected',
    ],
    [
      'services',
      'web',
      { configs: boltzSet('gone') },
      'changed services web configs: gone does not exist',
    ],
    [
      'services',
      'fabric-1',
      { name: boltzText('web') },
      'changed services web name: fabric-1 has the same name, so it became web (web)',
    ],
    [
      'configs',
      'alt',
      { type: boltzText('gone') },
      'lost configs alt configTypeId: gone does not exist, without which the record is nothing',
    ],
    [
      'configTypes',
      'acme.v1',
      { schema: boltzText('[') },
      'lost configTypes acme.v1 schema: it is no JSON object, or is nested too deep',
    ],
    [
      'servicePolicies',
      'dial-1',
      { identityRoles: boltzSet('@gone') },
      'changed servicePolicies dial-1 identityRoles: gone does not exist',
    ],
    [
      'servicePolicies',
      'dial-1',
      { type: boltzInt32(3) },
      'lost servicePolicies dial-1 type: it is neither 1 for Dial nor 2 for Bind',
    ],
    [
      'identities',
      '-vKL94i-8',
      { serviceHostingCosts: bucketOf({ gone: boltzInt32(1) }) },
      'changed identities -vKL94i-8 serviceHostingCosts: gone does not exist',
    ],
    [
      'identities',
      '-vKL94i-8',
      { authPolicyId: boltzText('gone') },
      'changed identities -vKL94i-8 authPolicyId: gone does not exist',
    ],
    [
      'terminators',
      'static-1',
      { router: boltzText('gone') },
      'lost terminators static-1 routerId: gone does not exist, without which the record is nothing',
    ],
    [
      'externalJwtSigners',
      'idp-1',
      { jwksEndpoint: boltzText('http://127.0.0.1/k') },
      'decide externalJwtSigners idp-1 jwksEndpoint: keys are fetched over HTTPS from other hosts only, unless the configuration allows it',
    ],
    [
      'authenticators',
      'partner-1',
      {
        method: boltzText('updb'),
        updbUsername: boltzText('admin'),
        updbPassword: boltzText('0IXFKtiJ+IS52fLXyuXJdgH9os0sciP5AnLtG6jWJTI='),
        updbSalt: boltzText('/LCAkV06tg98wA=='),
      },
      'lost authenticators password-1 username: partner-1 has the same value',
    ],
    [
      'cas',
      'ca-1',
      { isVerified: boltzBoolean(false) },
      'decide cas ca-1 verificationToken: the CA is not verified; the controllers of a cluster have different tokens, and the one of this database is kept',
    ],
    [
      'mfas',
      'factor-1',
      { secret: boltzText('189') },
      'lost mfas factor-1 secret: the second factor has no identity or no readable secret',
    ],
    [
      'enrollments',
      'open-1',
      { method: boltzText('magic') },
      'lost enrollments open-1 method: it is none of ott, ottca, updb, erott, trott',
    ],
    [
      'authPolicies',
      'strict',
      { 'primary.updb.minPasswordLength': boltzInt64(3) },
      'changed authPolicies strict primary.updb.minPasswordLength: passwords have 5 to 100 characters',
    ],
  ])('contains the fault in the OpenZiti record %s %s', (store, id, fields, expected) => {
    expect(newFindings(withFields(store, id, fields as unknown as StoredFields))).toContain(
      expected,
    )
  })

  test('lists records that depend on a missing record, directly or through other records', () => {
    const found = newFindings(withFields('configs', 'alt', { type: boltzText('gone') }))
    expect(found).toEqual([
      'lost configs alt configTypeId: gone does not exist, without which the record is nothing',
      'lost identities -vKL94i-8 serviceConfigs: alt does not exist, without which the record is nothing',
      'changed services web configs: alt does not exist',
    ])
  })

  test('lists a config override as lost if its ids are longer than a record id may be', () => {
    const long = 'x'.repeat(400)
    const found = newFindings(
      withFields('identities', '-vKL94i-8', {
        serviceConfigs: bucketOf({ web: bucketOf({ [long]: boltzText('alt') }) }),
      }),
    )
    expect(found).toEqual([
      'lost identities -vKL94i-8 serviceConfigs: its id would have more than 386 characters',
    ])
  })

  test('lists a certificate that names a known CA as its issuer, but that another key signed', async () => {
    const other = await newCa('network', NOW)
    const leafPem = await clientCertificate(other, 'edge-1', NOW)
    const found = newFindings(
      withFields('authenticators', 'certificate-1', {
        certPem: boltzText(leafPem),
        certFingerprint: boltzText(sha1Of(leafPem)),
      }),
    )
    expect(found).toEqual([
      expect.stringContaining('decide authenticators certificate-1 certPem: no authority'),
    ])
  })

  test('lists an unknown store of the database as lost, unless the store is empty', () => {
    const stores = { ...sampleStores(pem), spells: { s1: { name: boltzText('s') } }, ghosts: {} }
    expect(newFindings(stores)).toEqual(['lost ziti/spells  : this store is unknown'])
  })

  test('lists a limited number of findings, and counts all of them', () => {
    const many = Object.fromEntries(
      Array.from({ length: 1500 }, (_, at) => [`s${at}`, { name: boltzText('') }]),
    )
    const { report } = convert({ services: many })
    const [services] = report.stores.filter(({ store }) => store === 'services')
    expect([services?.counts.lost, services?.findings.length]).toEqual([1500, 1000])
  })

  test('lists a time before 1970 as lost', () => {
    const found = newFindings(
      withFields('identities', 'admin-1', { createdAt: boltzTime('1969-01-01T00:00:00Z') }),
    )
    expect(found).toContain('lost identities admin-1 createdAt: it is no value of type time')
  })
})

describe('An OpenZiti database that is to be migrated', () => {
  test.each([
    [36, /^its schema version is 36, older than that of OpenZiti 1\.5; upgrade/],
    [
      49,
      /^its schema version is 49, and this program knows versions up to 48; use a newer release/,
    ],
  ])('is refused if its schema version is %i', (version, message) => {
    expect(() => convert(sampleStores(pem), version)).toThrow(message)
  })

  test('is refused if another program wrote it', () => {
    const source = new MemorySource(writeBolt(bucketOf({ other: bucketOf({ a: boltzText('b') }) })))
    expect(() => new OpenZitiDatabase(source, () => undefined)).toThrow(
      /^it is a bbolt file, and not one of an OpenZiti controller/,
    )
  })
})
