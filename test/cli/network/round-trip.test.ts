import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { allSections } from '../../../src/cli/network/sections.ts'
import { Administrator } from '../client/support.ts'
import { fillNetwork } from './support.ts'

// Goal: a file contains a complete network. Method: two clusters; the second one gets only the file
// of the first.

let person: Administrator
let other: Administrator
let text = ''
beforeAll(async () => {
  person = await Administrator.loggedIn()
  other = await Administrator.loggedIn()
  await fillNetwork(person)
  text = await person.out('export')
})
afterAll(async () => {
  await person.close()
  await other.close()
})

test('an export contains every section, is the same when repeated, and contains no ID of an identity and no field with a secret', async () => {
  expect(await person.out('export')).toBe(text)
  for (const { name } of allSections()) expect(text).toMatch(new RegExp(`^${name}:$`, 'm'))
  const listed = await person.out('list', 'identities', '--all', '-o', 'json')
  const ids = (JSON.parse(listed) as { id: string }[]).map(({ id }) => id)
  for (const id of ids) expect(text).not.toContain(id)
  expect(text).not.toMatch(/^ *-? *(token|jwt|password|enrollment)\w*:/im)
  expect(text).toContain('identityRoles:\n      - "#staff"\n      - "@gate"\n      - "@laptop"\n')
})

test('an export can be written to a file', async () => {
  const path = join(person.folder, 'network.yml')
  expect(await person.out('export', '--out', path)).toBe('')
  expect(readFileSync(path, 'utf8')).toBe(text)
})

test('applying an export to the network from which it came changes nothing', async () => {
  const path = person.file('own.yml', text)
  expect(await person.out('apply', '-f', path, '--prune')).toBe('no change needed\n')
})

test('apply with --dry-run prints only the differences, and without it makes the target network identical to the exported one', async () => {
  const path = other.file('network.yml', text)
  const before = await other.out('export')
  const { code, stdout: dry } = await other.run('apply', '-f', path, '--dry-run')
  expect(code).toBe(6)
  expect(dry).toContain('+ service web\n')
  expect(dry).toContain('~ auth policy Default\n    primary: {')
  expect(dry).toMatch(/^dry run, nothing was changed: \d+ created, \d updated, 0 deleted$/m)
  expect(await other.out('export')).toBe(before)
  expect(await other.out('apply', '-f', path)).toMatch(/^done: \d+ created, 4 updated, 0 deleted$/m)
  // Both networks had the same two people of the test controller at the beginning.
  expect(await other.out('export')).toBe(text)
  expect(await other.out('apply', '-f', path)).toBe('no change needed\n')
  expect(await other.out('apply', '-f', path, '--dry-run')).toBe('no change needed\n')
})

test.each([
  ['omits the identity', ''],
  ['lists the identity', 'identities:\n  - name: hatch\n    type: Router\n'],
])(
  'apply creates a router and then the policy and the config override of its identity, if the file %s',
  async (_, listed) => {
    const third = await Administrator.loggedIn()
    try {
      const text = `version: 1
configs:
  - name: far
    configType: host.v1
    data: {protocol: tcp, address: 10.0.0.1, port: 80}
servicePolicies:
  - name: hatch-dials
    type: Dial
    semantic: AnyOf
    identityRoles: ["@hatch"]
    serviceRoles: ["@lake"]
serviceConfigs:
  - identity: hatch
    service: lake
    config: far
services:
  - name: lake
    encryptionRequired: true
edgeRouters:
  - name: hatch
    isTunnelerEnabled: true
${listed}`
      const path = third.file('hatch.yml', text)
      expect(await third.out('apply', '-f', path)).toMatch(
        /^done: \d created, \d updated, 0 deleted$/m,
      )
      expect(await third.out('get', 'service-policy', 'hatch-dials')).toContain('@hatch')
      const exported = await third.out('export')
      expect(exported).toContain('  - identity: hatch\n')
      const own = third.file('own.yml', exported)
      expect(await third.out('apply', '-f', own, '--prune')).toBe('no change needed\n')
    } finally {
      await third.close()
    }
  },
)

test('a policy is refused if its identity roles name a router that has no identity, because its tunneler is disabled', async () => {
  const path = other.file(
    'plain.yml',
    'version: 1\nedgeRouters:\n  - name: plain\nservicePolicies:\n  - name: plain-dials\n    type: Dial\n    semantic: AnyOf\n    identityRoles: ["@plain"]\n    serviceRoles: ["#all"]\n',
  )
  const done = await other.run('apply', '-f', path)
  expect([done.code, done.stderr]).toEqual([2, expect.stringContaining('no identity "plain"')])
})

test('apply keeps the expiry of a policy if the file omits it, replaces it by the one in the file, and removes it if the file contains null', async () => {
  const file = (rest: string): string =>
    person.file(
      'ends.yml',
      `version: 1\nservicePolicies:\n  - name: visit\n    type: Dial\n    semantic: AnyOf\n    identityRoles: ["#visitors"]\n    serviceRoles: ["@web"]\n${rest}`,
    )
  const end = async (): Promise<unknown> => {
    const row = JSON.parse(await person.out('get', 'service-policy', 'visit', '-o', 'json')) as {
      readonly expiresAt?: string
    }
    return row.expiresAt
  }
  const first = '2099-01-31T18:00:00.000Z'
  expect(await person.out('apply', '-f', file(''))).toBe('no change needed\n')
  expect(await person.out('apply', '-f', file('    tags: {a: 1}\n'))).toContain('tags')
  expect(await end()).toBe(first)
  const moved = await person.out('apply', '-f', file('    expiresAt: 2099-03-01T00:00:00+01:00\n'))
  expect(moved).toContain(`expiresAt: "${first}" -> "2099-02-28T23:00:00.000Z"`)
  await person.out('apply', '-f', file('    expiresAt: null\n'))
  expect(await end()).toBe(undefined)
  await person.out('update', 'service-policy', 'visit', '--until', first, 'tags={}')
  expect(await person.out('export')).toBe(text)
})

test('apply ignores expired policies and expired role attributes in a network file, because they grant no access', async () => {
  const path = person.file(
    'ended.yml',
    `version: 1
identities:
  - name: visitor
    roleAttributes: [staff, former, visitors]
    roleAttributesExpireAt: {former: "2020-01-01T00:00:00Z", visitors: "2099-01-31T18:00:00Z"}
servicePolicies:
  - name: former
    type: Dial
    semantic: AnyOf
    identityRoles: ["#former"]
    serviceRoles: ["@web"]
    expiresAt: 2020-01-01T00:00:00Z
`,
  )
  expect(await person.out('apply', '-f', path)).toBe('no change needed\n')
})

test('apply updates changed records, and deletes records that the file lacks only with --prune', async () => {
  const path = join(other.folder, 'less.yml')
  const less = text
    .replace(/ {2}- name: wiki\n(?: {4}.*\n)+/, '')
    .replace(/ {2}- service: wiki\n(?: {4}.*\n)+/, '')
    .replace('roleAttributes:\n      - intranet', 'roleAttributes:\n      - extranet')
  writeFileSync(path, less)
  const kept = await other.out('apply', '-f', path)
  expect(kept).toContain('~ service web\n    roleAttributes: ["intranet"] -> ["extranet"]\n')
  expect(await other.out('apply', '-f', path)).toBe('no change needed\n')
  const asked = await other.run('apply', '-f', path, '--prune')
  expect([asked.code, asked.stderr]).toEqual([
    2,
    expect.stringContaining('add --yes. Nothing changed'),
  ])
  const pruned = await other.out('apply', '-f', path, '--prune', '--yes')
  expect(pruned).toMatch(/^deleted terminator wiki core [^]*deleted service wiki$/m)
  expect(await other.out('export')).toBe(less)
})

test('apply of an empty file with --prune deletes all records except those that a new cluster contains, and except the caller’s identity', async () => {
  const path = other.file('empty.yml', 'version: 1\n')
  const done = await other.out('apply', '-f', path, '--prune', '--yes')
  expect(done).toMatch(/, 1 updated, \d+ deleted$/m)
  const rest = await other.out('export')
  expect(rest).toContain('isDefaultAdmin: true')
  expect(rest).toMatch(/^identities:\n {2}- name: Default Admin\n/m)
  for (const name of ['services', 'configs', 'edgeRouters', 'servicePolicies']) {
    expect(rest).not.toContain(`${name}:`)
  }
  await other.out('list', 'identities')
})
