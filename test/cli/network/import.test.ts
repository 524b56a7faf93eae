import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { UnimportedFields } from '../../../src/cli/network/unimported-fields.ts'
import { networkFileFields } from '../../../src/cli/network/network-file-fields.ts'
import { allSections } from '../../../src/cli/network/sections.ts'
import { newCa } from '../../support/authorities.ts'
import { Administrator } from '../client/support.ts'

// Goal: one command imports the network of another controller. The export below has the form that
// `ziti ops export` of release 2.0 writes: references begin with `@`, and objects contain members
// of details that the export does not filter out.

let person: Administrator
let certPem = ''
beforeAll(async () => {
  certPem = (await newCa('plant', Date.now())).certificatePem
})
beforeEach(async () => {
  person = await Administrator.loggedIn()
})
afterEach(() => person.close())

const identity = (name: string, rest: object = {}): object => ({
  authPolicy: '@Default',
  disabled: false,
  edgeRouterConnectionStatus: 'offline',
  externalId: null,
  hasErConnection: false,
  interfaces: [],
  isAdmin: false,
  isDefaultAdmin: false,
  isMfaEnabled: false,
  name,
  permissions: null,
  roleAttributes: [],
  tags: {},
  typeId: 'Default',
  ...rest,
})
const stock = (): Record<string, object[]> => ({
  authPolicies: [
    {
      name: 'by-token',
      primary: {
        cert: { allowExpiredCerts: false, allowed: true },
        extJwt: { allowed: true, allowedSigners: ['@idp'] },
        updb: {
          allowed: false,
          lockoutDurationMinutes: 0,
          maxAttempts: 5,
          minPasswordLength: 5,
          requireMixedCase: false,
          requireNumberChar: false,
          requireSpecialChar: false,
        },
      },
      secondary: { requireExtJwtSigner: '@idp', requireTotp: false },
      tags: {},
    },
  ],
  certificateAuthorities: [
    {
      certPem,
      fingerprint: 'abc',
      identityNameFormat: '[caName]-[commonName]',
      identityRoles: ['pumps'],
      isAuthEnabled: true,
      isAutoCaEnrollmentEnabled: false,
      isOttCaEnrollmentEnabled: false,
      isVerified: true,
      name: 'plant',
      tags: {},
    },
  ],
  configTypes: [
    { name: 'proxy.v1', schema: { type: 'object' }, tags: {} },
    { name: 'custom', schema: { type: 'object' }, tags: {} },
  ],
  configs: [{ configType: '@custom', data: { a: 1 }, name: 'c1', tags: {} }],
  edgeRouters: [
    {
      appData: {},
      disabled: false,
      enrollmentToken: '00000000-secret',
      hostname: 'gate.test',
      isTunnelerEnabled: true,
      name: 'gate',
      noTraversal: true,
      roleAttributes: ['public'],
      tags: {},
      unverifiedCertPem: null,
      unverifiedFingerprint: null,
    },
    { name: 'door', isTunnelerEnabled: true, roleAttributes: [], tags: {} },
  ],
  edgeRouterPolicies: [
    {
      edgeRouterRoles: ['#all'],
      identityRoles: ['@laptop'],
      name: 'all',
      semantic: 'AnyOf',
      tags: {},
    },
    {
      edgeRouterRoles: ['@gate'],
      identityRoles: ['@gate'],
      semantic: 'AnyOf',
      tags: {},
      name: 'edge-router-Xq1-system',
    },
  ],
  externalJwtSigners: [
    {
      audience: 'net',
      certPem: null,
      claimsProperty: 'email',
      clientId: 'id',
      enabled: true,
      externalAuthUrl: 'https://idp.test',
      fingerprint: null,
      issuer: 'https://idp.test',
      jwksEndpoint: 'https://idp.test/keys',
      kid: '',
      name: 'idp',
      scopes: ['openid'],
      tags: {},
      targetToken: 'ACCESS',
      useExternalId: true,
    },
  ],
  identities: [
    identity('Default Admin', { isAdmin: true, isDefaultAdmin: true }),
    identity('laptop', { roleAttributes: ['staff'], authPolicy: '@by-token', externalId: 'l-1' }),
    identity('gate', { typeId: 'Router', roleAttributes: ['hosts'] }),
    identity('gone', { disabled: true }),
    identity('door', { typeId: 'Router' }),
  ],
  postureChecks: [],
  serviceEdgeRouterPolicies: [
    { edgeRouterRoles: ['#all'], name: 'any', semantic: 'AllOf', serviceRoles: ['#all'], tags: {} },
  ],
  servicePolicies: [
    {
      identityRoles: ['#staff'],
      name: 'dial',
      postureCheckRoles: [],
      semantic: 'AnyOf',
      serviceRoles: ['@web'],
      tags: {},
      type: 'Dial',
    },
  ],
  services: [
    {
      configs: ['@c1'],
      encryptionRequired: true,
      name: 'web',
      roleAttributes: [],
      tags: {},
      terminatorStrategy: 'smartrouting',
    },
  ],
})

const imported = (text: string, ...flags: string[]) =>
  person.run('import', person.file('export.json', text), ...flags)

test('an import creates the network from an OpenZiti export, and a second import changes nothing', async () => {
  const text = JSON.stringify(stock(), null, 2)
  const before = await person.out('export')
  const dry = await imported(text, '--dry-run')
  expect([dry.code, dry.stdout]).toEqual([6, expect.stringContaining('+ service web\n')])
  expect(await person.out('export')).toBe(before)
  const done = await imported(text)
  expect([done.code, done.stdout]).toEqual([
    0,
    expect.stringMatching(/^done: 13 created, 1 updated, 0 deleted$/m),
  ])
  expect(done.stderr.replaceAll(person.folder, '')).toBe(
    [
      'flotilla: /export.json: skipped 1 built-in config types',
      'flotilla: /export.json: skipped 1 policies that routers create themselves',
      'flotilla: /export.json: skipped 1 default administrator, as this network has its own',
      'flotilla: /export.json: not carried over: certificateAuthorities.isVerified of 1 (plant); verify them with: flotilla ca verify',
      'flotilla: /export.json: not carried over: edgeRouters.enrollmentToken of 1 (gate); enroll these routers again',
      'flotilla: /export.json: ignored fields: identities.hasErConnection (4)\n',
    ].join('\n'),
  )
  const network = await person.out('export')
  expect(network).toContain('- name: laptop\n    authPolicy: by-token\n    externalId: l-1\n')
  expect(network).toContain('- name: gate\n    roleAttributes:\n      - hosts\n    type: Router\n')
  expect(network).toContain('- name: gone\n    disabled: true\n')
  expect(network).not.toContain('00000000-secret')
  expect((await imported(text)).stdout).toBe('no change needed\n')
})

test('an import leaves the fields of existing records unchanged if the export does not contain them', async () => {
  await person.out('create', 'edge-router', 'name=gate', 'cost=9', 'isTunnelerEnabled=true')
  await person.out('create', 'identity', 'name=laptop', 'defaultHostingCost=3')
  const done = await imported(JSON.stringify(stock()))
  expect([done.code, done.stdout]).toEqual([0, expect.stringContaining('~ edge router gate\n')])
  expect(await person.out('get', 'edge-router', 'gate')).toMatch(/^cost: 9$/m)
  expect(await person.out('get', 'identity', 'laptop')).toMatch(/^defaultHostingCost: 3$/m)
})

test('an import of posture checks is refused unless the user accepts that the export does not say which policies require them', async () => {
  const check = {
    domains: ['corp.test'],
    name: 'corp',
    roleAttributes: null,
    tags: {},
    typeId: 'DOMAIN',
  }
  const text = JSON.stringify({ ...stock(), postureChecks: [check] })
  const refused = await imported(text)
  expect([refused.code, refused.stdout]).toEqual([1, ''])
  expect(refused.stderr).toMatch(/which of its 1 service policies require them.*Nothing changed$/m)
  expect(await person.out('list', 'services', '-o', 'name')).toBe('')
  expect((await imported(text, '--accept-lost-posture-checks')).code).toBe(0)
})

test('an import accepts YAML, and reports each fault with its line number', async () => {
  const yaml =
    "services:\n    - encryptionRequired: true\n      name: web\n      configs:\n        - '@none'\n"
  const unknown = await imported(yaml)
  expect([unknown.code, unknown.stderr.split(': ').slice(2).join(': ')]).toEqual([
    2,
    'line 4: service web: no config "none"; it is neither in the file nor in the network\n',
  ])
  const section = await imported('service: []\n')
  expect(section.stderr).toMatch(/line 1: unknown section "service"; did you mean services\?/)
  expect((await imported('{')).code).toBe(2)
})

describe('an import of a disabled identity', () => {
  const identities = (...all: object[]): string => JSON.stringify({ identities: all })
  const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString()
  const stateOf = async (name: string): Promise<[boolean, string | null]> => {
    const { disabled, disabledUntil = null } = JSON.parse(
      await person.out('get', 'identity', name, '-o', 'json'),
    ) as { disabled: boolean; disabledUntil?: string | null }
    return [disabled, disabledUntil]
  }

  test('disables the identity until the time in the export or up to a minute longer, and not at all if this time has passed', async () => {
    const end = inDays(30)
    const text = identities(
      identity('until', { disabled: true, disabledAt: inDays(-1), disabledUntil: end }),
      identity('untold', { disabled: undefined, disabledAt: inDays(-1), disabledUntil: end }),
      identity('over', { disabled: false, disabledAt: inDays(-3), disabledUntil: inDays(-2) }),
      identity('gone', { disabled: true, disabledUntil: null }),
    )
    // The command uses the clock of this process to count minutes, and the controller uses its own.
    const { clock } = person.cluster.controller
    clock.advance(Math.max(0, Date.now() - clock.nowMs()))
    expect((await imported(text)).code).toBe(0)
    const importedByMs = Date.now()
    for (const name of ['until', 'untold']) {
      const [isDisabled, until] = await stateOf(name)
      const lateMs = Date.parse(until ?? '') - Date.parse(end)
      const lagMs = importedByMs - clock.nowMs()
      expect([isDisabled, lateMs + lagMs >= 0, lateMs < 65_000]).toEqual([true, true, true])
    }
    expect(await stateOf('over')).toEqual([false, null])
    expect(await stateOf('gone')).toEqual([true, null])
    expect((await imported(text)).stdout).toBe('no change needed\n')
  })

  test('makes a new export contain the end of the disablement, and applying this export disables the identity again after it was enabled', async () => {
    await imported(identities(identity('until', { disabled: true, disabledUntil: inDays(30) })))
    const network = await person.out('export')
    expect(network).toMatch(/- name: until\n    disabledUntil: \d{4}-\d\d-\d\dT[\d:.]+Z\n/)
    const path = person.file('network.yml', network)
    expect(await person.out('apply', '-f', path)).toBe('no change needed\n')
    await person.cluster.ask('POST', `/identities/${await idOf('until')}/enable`)
    expect(await person.out('apply', '-f', path)).toMatch(/^ {4}disabledUntil: unset -> "/m)
    expect((await stateOf('until'))[0]).toBe(true)
    await person.out('apply', '-f', person.file('now.yml', network.replace(/Until: .*/, ': true')))
    expect(await stateOf('until')).toEqual([true, null])
  })

  const idOf = async (name: string): Promise<string> =>
    (
      JSON.parse(await person.out('get', 'identity', name, '-o', 'json')) as {
        readonly id: string
      }
    ).id

  test.each([
    [{ disabled: 'yes' }, 'disabled: expected true or false'],
    [
      { disabled: true, disabledUntil: 'next week' },
      'disabledUntil: expected a time such as 2030-01-01T00:00:00Z',
    ],
    [
      { disabled: true, disabledUntil: '9999-01-01T00:00:00Z' },
      'disabledUntil: more than 100 years from now; use disabled: true',
    ],
    [{ isDefaultAdmin: 'true' }, 'isDefaultAdmin: expected true or false'],
  ])('is refused for %j, which this version cannot import', async (rest, problem) => {
    const done = await imported(identities(identity('laptop', rest)))
    expect([done.code, done.stderr.split('\n')[1]]).toEqual([
      2,
      `${join(person.folder, 'export.json')}: line 1: identity laptop: ${problem}`,
    ])
  })
})

test('an import lists the fields that it does not support, with the number of records that contain them', async () => {
  const many = Array.from({ length: 7 }, (_, at) =>
    identity(`i${at}`, { enrollment: { ott: { token: 't' } }, weird: at }),
  )
  const own = identity('own', { enrollment: {}, authenticators: {}, isMfaEnabled: true })
  const done = await imported(JSON.stringify({ identities: [...many, own] }))
  expect(done.code).toBe(0)
  expect(done.stderr.replaceAll(join(person.folder, 'export.json'), 'FILE').split('\n')).toEqual([
    'flotilla: FILE: not carried over: identities.enrollment of 7 (i0, i1, i2, i3, i4 and 2 more); create new ones with: flotilla create enrollment',
    'flotilla: FILE: not carried over: identities.isMfaEnabled of 1 (own); they set up their second factor again',
    'flotilla: FILE: ignored fields: identities.hasErConnection (8), identities.weird (7)',
    '',
  ])
})

test('among the fields that a network file cannot contain, an import reports exactly those in the list of this test as lost', () => {
  const lost = allSections().flatMap(({ name, kind }) => {
    const carried = networkFileFields(kind)
    const notes = kind.fields
      .filter((field) => !carried.includes(field) && !field.isSecret)
      .flatMap((field) => {
        const losses = new UnimportedFields()
        losses.add({ kind }, name, { name: 'x', [field.name]: 'something' }, field.name)
        return losses.notes()
      })
    return notes.map((note) => note.split(' ')[3])
  })
  expect(lost.sort()).toEqual(
    [
      'cas.isVerified',
      'edgeRouters.unverifiedCertPem',
      'edgeRouters.enrollmentToken',
      'edgeRouters.isVerified',
      // An export has no sections for these fields.
      'transitRouters.adoptableFingerprint',
      'transitRouters.certificateNames',
      'transitRouters.interfaces',
      'transitRouters.isOnline',
      'transitRouters.unverifiedCertPem',
      'transitRouters.unverifiedFingerprint',
      'transitRouters.enrollmentToken',
      'transitRouters.enrollmentJwt',
      'transitRouters.enrollmentCreatedAt',
      'transitRouters.enrollmentExpiresAt',
      'transitRouters.fingerprint',
      'transitRouters.isVerified',
      'transitRouters.offlineSince',
      'transitRouters.onlineSince',
      'terminators.dynamicCost',
      'identities.enrollment',
      'identities.authenticators',
      'identities.isMfaEnabled',
    ].sort(),
  )
})
