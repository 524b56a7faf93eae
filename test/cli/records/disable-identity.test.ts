import { afterAll, beforeAll, expect, test } from 'vitest'

import { Administrator } from '../client/support.ts'

// Goal: an administrator locks a stolen device or a person out with one command, and the command
// that looks like the right one names it.

let person: Administrator
beforeAll(async () => {
  person = await Administrator.loggedIn()
  await person.out('create', 'identity', 'name=laptop')
})
afterAll(() => person.close())

async function isDisabled(): Promise<unknown> {
  const { disabled } = JSON.parse(await person.out('get', 'identity', 'laptop', '-o', 'json'))
  return disabled
}

test('identity disable and identity enable set and clear the field disabled of an identity', async () => {
  expect(await person.out('identity', 'disable', 'laptop')).toBe('disabled identity laptop\n')
  expect(await isDisabled()).toBe(true)
  expect(await person.out('identity', 'enable', 'laptop')).toBe('enabled identity laptop\n')
  expect(await isDisabled()).toBe(false)
})

test('identity disable exits with 4 for an unknown identity', async () => {
  const done = await person.run('identity', 'disable', 'nobody')
  expect([done.code, done.stderr]).toEqual([4, expect.stringContaining('no identity')])
})

test('an update of the field disabled is refused, and names the commands', async () => {
  const done = await person.run('update', 'identity', 'laptop', 'disabled=true')
  expect([done.code, done.stderr]).toEqual([
    2,
    expect.stringContaining('flotilla identity disable NAME, or flotilla identity enable NAME'),
  ])
  expect(await isDisabled()).toBe(false)
})
