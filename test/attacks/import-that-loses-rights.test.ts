import { afterAll, beforeAll, expect, test } from 'vitest'

import { Administrator } from '../cli/client/support.ts'

// The attack: somebody is excluded from a network, temporarily or by a value that the importer does
// not know, and waits for an import into another network that admits them or loses the exclusion
// without a message.

let person: Administrator
beforeAll(async () => {
  person = await Administrator.loggedIn()
})
afterAll(() => person.close())

const end = new Date(Date.now() + 30 * 86_400_000).toISOString()
const imported = (...identities: object[]) =>
  person.run('import', person.file('export.json', JSON.stringify({ identities })))
const identity = (name: string, rest: object): object => ({
  name,
  isAdmin: false,
  typeId: 'Default',
  ...rest,
})
const isDisabled = async (name: string): Promise<unknown> =>
  (JSON.parse(await person.out('get', 'identity', name, '-o', 'json')) as Record<string, unknown>)[
    'disabled'
  ]

test('an identity that is disabled until a certain time stays disabled when it is imported, and when it is exported, deleted and applied again', async () => {
  await imported(identity('until', { disabled: true, disabledUntil: end }))
  expect(await isDisabled('until')).toBe(true)
  const file = person.file('network.yml', await person.out('export'))
  await person.out('delete', 'identity', 'until', '--yes')
  await person.out('apply', '-f', file)
  expect(await isDisabled('until')).toBe(true)
})

test('an import with an ambiguous value for a disabled identity is refused, and changes nothing', async () => {
  const done = await imported(identity('unclear', { disabled: 'yes' }), identity('other', {}))
  expect(done.code).toBe(2)
  expect(await person.out('list', 'identities', '-o', 'name')).not.toContain('other')
})

test('an import lists the values that it drops', async () => {
  const done = await imported(identity('holder', { enrollment: { ott: true } }))
  expect(done.stderr).toContain('not carried over: identities.enrollment of 1 (holder)')
})
