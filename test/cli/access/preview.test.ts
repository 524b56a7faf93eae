import { afterAll, beforeAll, expect, test } from 'vitest'

import { Administrator } from '../client/support.ts'

let person: Administrator
beforeAll(async () => {
  person = await Administrator.loggedIn()
  for (const line of [
    'identity name=laptop roleAttributes=sales',
    'identity name=phone',
    'service name=crm encryptionRequired=true',
    'service name=wiki encryptionRequired=true',
    'edge-router name=gate',
    'service-policy name=everybody type=Dial semantic=AnyOf identityRoles=#sales serviceRoles=#all',
  ]) {
    await person.out('create', ...line.split(' '))
  }
})
afterAll(() => person.close())

test('access preview shows which access a list of changes grants and removes, with the names of existing and new records', async () => {
  const file = person.file(
    'changes.yml',
    `
- create: posture-check
  name: mfa
  typeId: MFA
- create: service
  name: mail
  encryptionRequired: true
- create: service-policy
  name: sales-mail
  type: Bind
  semantic: AnyOf
  identityRoles: ['@phone']
  serviceRoles: ['@mail']
- update: sp
  record: everybody
  serviceRoles: ['@wiki']
  postureCheckRoles: ['@mfa']
- create: edge-router-policy
  name: routers
  semantic: AnyOf
  identityRoles: ['@laptop']
  edgeRouterRoles: ['@gate']
`,
  )
  expect(await person.out('access', 'preview', '-f', file)).toBe(`dial: 0 given, 1 taken
bind: 1 given, 0 taken
edge routers of identities: 1 given, 0 taken
edge routers of services: 0 given, 0 taken
- dial laptop -> crm
+ bind phone -> mail
+ router laptop -> gate
posture checks of policy everybody: +mfa
`)
  const json = await person.out('access', 'preview', '-f', file, '-o', 'json', '--limit', '1')
  expect(JSON.parse(json)).toMatchObject({
    counts: { dial: { given: 0, taken: 1 } },
    rows: [{ right: 'dial', change: 'taken' }],
    pagination: { totalCount: 3 },
  })
  expect(await person.out('list', 'sp', '-o', 'name')).toBe('everybody\n')
})

test('apply --dry-run --access shows which access a network file would change', async () => {
  const text = await person.out('export')
  const wanted = person.file('network.yml', text.replace('- "#all"', "- '@crm'"))
  expect(text).toContain('- "#all"')
  const { stdout: shown } = await person.run('apply', '-f', wanted, '--dry-run', '--access')
  expect(shown).toContain('dial: 0 given, 1 taken\n')
  expect(shown).toContain('- dial laptop -> wiki\n')
  const words = ['apply', '-f', wanted, '--dry-run', '--access', '-o', 'json']
  const { code: drift, stdout: json } = await person.run(...words)
  expect(drift).toBe(6)
  expect(JSON.parse(json)).toMatchObject({ isDone: false, access: { counts: {} } })
  const same = person.file('same.yml', text)
  expect(await person.out('apply', '-f', same, '--dry-run', '--access')).toContain(
    'access: no change',
  )
  const { code, stderr } = await person.run('apply', '-f', wanted, '--access')
  expect([code, stderr]).toEqual([2, expect.stringContaining('--access needs --dry-run')])
})

test('access preview refuses an invalid change with the reason in the first line', async () => {
  const refusal = async (text: string): Promise<string> => {
    const { code, stderr } = await person.run('access', 'preview', '-f', person.file('a.yml', text))
    return `${code} ${stderr.split('\n')[0] ?? ''}`
  }
  expect(await refusal('name: x')).toMatch(/^2 .*expected a list of changes/)
  expect(await refusal('- name: x')).toMatch(/^2 .*change 1: expected a list/)
  expect(await refusal('- update: identity\n  name: x')).toMatch(/^2 .*record names what to update/)
  expect(await refusal('- delete: identity\n  record: nobody')).toMatch(/^4 .*no identity "nobody"/)
  expect(await refusal('- create: service\n  nam: x')).toMatch(/^2 .*did you mean name/)
  expect(await refusal('- create: ca\n  name: x')).toMatch(/^1 .*changes\.0\.kind/)
})
