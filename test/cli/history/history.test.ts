import { afterAll, beforeAll, expect, test } from 'vitest'

import { Administrator } from '../client/support.ts'

let person: Administrator
beforeAll(async () => {
  person = await Administrator.loggedIn()
  for (const line of [
    'create identity name=laptop roleAttributes=sales',
    'create service name=crm encryptionRequired=true roleAttributes=crm',
    'create service-policy name=sales-crm type=Dial semantic=AnyOf identityRoles=#sales serviceRoles=#crm',
    'update service crm roleAttributes=closed',
  ]) {
    await person.out(...line.split(' '))
  }
})
afterAll(() => person.close())

interface Entry {
  readonly index: number
  readonly action: string
  readonly entityName: string
}

async function entries(...words: readonly string[]): Promise<readonly Entry[]> {
  return JSON.parse(await person.out('history', ...words, '-o', 'json')) as readonly Entry[]
}

test('history lists the changes of a record, newest first, and accepts filters', async () => {
  const text = await person.out('history', 'service', 'crm')
  const [titles, patched, created, ...rest] = text.trimEnd().split('\n')
  expect(titles?.split(/ +/)).toEqual(['entry', 'at', 'actor', 'action', 'kind', 'name', 'change'])
  expect(patched).toMatch(/ patch +service +crm +roleAttributes: \["crm"\] -> \["closed"\]$/)
  expect(created).toMatch(/ create +service +crm$/)
  expect(rest).toEqual([])
  const created1h = await entries('--action', 'create', '--since', '1h', '--actor', 'admin-id')
  expect(created1h.map(({ entityName }) => entityName)).toEqual(['sales-crm', 'crm', 'laptop'])
  expect(await entries('services', 'unknown')).toEqual([])
  const { stdout, stderr } = await person.run('history')
  expect([stdout.split('\n').length > 4, stderr]).toEqual([true, ''])
})

test('history --undo shows the effect of the undo, and then reverts the change', async () => {
  const [latest] = await entries('service', 'crm')
  const index = String(latest?.index)
  const dry = await person.run('history', '--undo', index, '--dry-run')
  const effect = `update service crm
  roleAttributes: ["closed"] -> ["crm"]
dial: 1 given, 0 taken
bind: 0 given, 0 taken
edge routers of identities: 0 given, 0 taken
edge routers of services: 0 given, 0 taken
+ dial laptop -> crm
`
  expect(dry).toMatchObject({ code: 0, stdout: effect, stderr: 'flotilla: nothing was written\n' })
  expect(await person.run('history', '--undo', index)).toMatchObject({
    code: 0,
    stdout: effect,
    stderr: `flotilla: entry ${index} is undone\n`,
  })
  const again = await person.run('history', '--undo', index)
  expect(again.code).toBe(1)
  expect(again.stderr).toContain('service crm was changed: roleAttributes')
})

test('history refuses invalid arguments with a hint', async () => {
  for (const [words, hint] of [
    [['servcie'], 'service'],
    [['--since', 'yesterday'], 'an age such as 24h'],
    [['--dry-run'], '--dry-run belongs to --undo ENTRY'],
    [['service', 'crm', '--undo', '1'], '--undo takes the number of an entry'],
    [['--undo', 'x'], 'Expected an integer'],
  ] as const) {
    const { code, stderr } = await person.run('history', ...words)
    expect(code, stderr).toBe(2)
    expect(stderr).toContain(hint)
  }
  const missing = await person.run('history', '--undo', '999999')
  expect([missing.code, missing.stderr]).toEqual([
    4,
    expect.stringContaining('no entry 999999 in the audit log'),
  ])
})
