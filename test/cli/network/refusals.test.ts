import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { parseNetworkFile } from '../../../src/cli/network/network-file.ts'
import { createSchemaChecks } from '../../../src/cli/network/file-checks.ts'
import { Administrator } from '../client/support.ts'

// Goal: a file with one mistake changes nothing, and its mistake is named with its line.

let person: Administrator
let before = ''
beforeAll(async () => {
  person = await Administrator.loggedIn()
  const fields = ['name=wiki', 'encryptionRequired=true']
  await person.out('create', 'service', ...fields)
  before = await person.out('export')
})
afterAll(() => person.close())

const service = (name: string, rest = ''): string =>
  `services:\n  - name: ${name}\n    encryptionRequired: true\n${rest}`
const policy = (roles: string): string =>
  `servicePolicies:\n  - name: dial\n    type: Dial\n    semantic: AnyOf\n    serviceRoles: [${roles}]\n`

describe('an invalid network file for flotilla apply', () => {
  test.each([
    ['services: [', 1, /^line 1: /],
    ['version: 2', 1, 'line 1: expected version: 1'],
    ['- a', 1, 'line 1: expected the sections of a network, such as services:'],
    ['version: 1\nservice: []', 1, 'line 2: unknown section "service"; did you mean services?'],
    ['version: 1\nservices: 3', 1, 'line 2: services: expected a list of services'],
    ['version: 1\nservices: [3]', 1, 'line 2: expected the fields of a service'],
    [
      `version: 1\n${service('web', '    roleAtributes: [a]\n')}`,
      1,
      'line 5: a service has no field "roleAtributes"; did you mean roleAttributes?',
    ],
    [`version: 1\n${service('web', '    id: abc\n')}`, 1, /^line 5: a service has no field "id"/],
    [
      `version: 1\n${service('web', '    permissions: [Dial]\n')}`,
      1,
      'line 5: permissions of a service cannot be part of a network file',
    ],
    [
      'version: 1\nservices:\n  - name: web\n',
      1,
      'line 3: service web: encryptionRequired must be given',
    ],
    [
      `version: 1\n${service('web', '    maxIdleTimeMillis: -1\n')}`,
      1,
      'line 5: service web: maxIdleTimeMillis in body should be greater than or equal to 0',
    ],
    [
      `version: 1\n${service('web', "    roleAttributes: ['#a']\n")}`,
      1,
      'line 5: service web: role attributes may not be prefixed with #',
    ],
    [
      `version: 1\n${policy('web')}`,
      1,
      /^line 6: service policy dial: role entries must be prefixed/,
    ],
    [
      `version: 1\n${service('web')}${service('web').replace('services:\n', '')}`,
      1,
      'line 5: service web is given twice, first on line 3',
    ],
    [
      `version: 1\n${policy('"@wik", "@zzzzzzz"')}`,
      2,
      'line 6: service policy dial: no service "wik"; did you mean wiki?',
      'line 6: service policy dial: no service "zzzzzzz"; it is neither in the file nor in the network',
    ],
    [
      'version: 1\nservices:\n  - name: wiki\n    encryptionRequired: false\n',
      1,
      'line 4: service wiki: encryptionRequired is true and cannot be changed; delete the record to create another',
    ],
    [
      'version: 1\nidentities:\n  - name: gate\n    type: Router\n',
      1,
      'line 4: identity gate: no edge router of that name has isTunnelerEnabled: true, which would make it',
    ],
    [
      'version: 1\nedgeRouters:\n  - name: gate\ntransitRouters:\n  - name: gate\n',
      1,
      'line 5: transit router gate: conflicts with edge router gate on line 3',
    ],
    [
      'version: 1\nservices: &a\n  - *a\n',
      1,
      /^line \d: is nested deeper than|^line \d: refers to an anchor|alias/i,
    ],
  ] as [string, number, ...(string | RegExp)[]][])(
    'is refused with one sentence and its line number for each fault: %j',
    async (text, count, ...sentences) => {
      const path = person.file('network.yml', text)
      const done = await person.run('apply', '-f', path, '--prune', '--yes')
      const [head = '', ...lines] = done.stderr.trimEnd().split('\n')
      expect([done.code, head, done.stdout]).toEqual([2, 'flotilla: nothing was changed', ''])
      expect(lines).toHaveLength(count)
      for (const [at, sentence] of sentences.entries()) {
        const said = lines[at]?.slice(`${path}: `.length) ?? ''
        if (typeof sentence === 'string') expect(said).toBe(sentence)
        else expect(said).toMatch(sentence)
      }
    },
  )

  test('is refused, with the line of each record, if its records form a cycle of references', async () => {
    const path = person.file('circle.yml', circle())
    const done = await person.run('apply', '-f', path)
    expect(done.code).toBe(2)
    expect(done.stderr).toContain(
      `${path}: line 3: external jwt signer idp: references auth policy by-token in a cycle of`,
    )
    expect(done.stderr).toContain(
      `${path}: line 10: auth policy by-token: references external jwt signer idp in a cycle of`,
    )
  })

  test('is refused without changing any record', async () => {
    expect(await person.out('export')).toBe(before)
  })
})

/** The remedy in the refusal works. */
test('records that reference each other in a cycle can be created by applying two files one after the other', async () => {
  const half = person.file('half.yml', circle().replace('    enrollAuthPolicy: by-token\n', ''))
  await person.out('apply', '-f', half)
  const whole = person.file('circle.yml', circle())
  expect(await person.out('apply', '-f', whole)).toContain('enrollAuthPolicy: unset -> "by-token"')
  expect(await person.out('apply', '-f', whole)).toBe('no change needed\n')
})

function circle(): string {
  return `version: 1
externalJwtSigners:
  - name: idp
    enabled: true
    issuer: https://idp.test
    audience: net
    jwksEndpoint: https://idp.test/keys
    enrollAuthPolicy: by-token
authPolicies:
  - name: by-token
    primary:
      extJwt: { allowed: true, allowedSigners: [idp] }
    secondary: { requireTotp: false }
`
}

test('apply stops when the cluster refuses a record, reports how many changes it has made, and can be repeated', async () => {
  const config = (data: string): string => `version: 1
configs:
  - name: ports
    configType: proxy.v1
    data: ${data}
services:
  - name: ported
    encryptionRequired: true
    configs: [ports]
`
  const path = person.file('ports.yml', config('{ port: none }'))
  const done = await person.run('apply', '-f', path)
  expect(done.code).toBe(1)
  expect(done.stderr).toMatch(/^flotilla: cannot create config ports: .*; 0 of 2 steps done/)
  person.file('ports.yml', config('{ port: 80, protocols: [tcp] }'))
  expect(await person.out('apply', '-f', path, '--json')).toContain('"isDone": true')
  expect(await person.out('apply', '-f', path)).toBe('no change needed\n')
})

test('apply finds a duplicate among 300,000 keys of a network file', () => {
  const keys = Array.from({ length: 300_000 }, (_, at) => `k${at}: 1`).join(', ')
  const text = `version: 1\nservices:\n  - name: web\n    tags: {${keys},\n      k7: 2}\n`
  const { faults } = parseNetworkFile(text, createSchemaChecks())
  expect(faults).toEqual([
    { line: 5, problem: expect.stringContaining('the same key is given twice') },
  ])
})
