import { afterAll, beforeAll, expect, test } from 'vitest'

import { run } from './support.ts'
import { Administrator } from './client/support.ts'

// Goal: a shell completes words that the program accepts at that place, including names of records.

let person: Administrator
beforeAll(async () => {
  person = await Administrator.loggedIn()
  await person.out('create', 'service', 'name=web', 'encryptionRequired=true')
})
afterAll(() => person.close())

const offered = async (...words: string[]): Promise<string[]> =>
  (await person.out('complete-words', '--', ...words)).split('\n').filter(Boolean)

test('completion offers commands, options, kinds, fields, names and contexts', async () => {
  expect(await offered('exp')).toEqual(['explain', 'export'])
  expect(await offered('context', '')).toEqual(['list', 'remove', 'use'])
  expect(await offered('apply', '--pr')).toEqual(['--prune'])
  expect(await offered('get', 'service-p')).toEqual(['service-policies', 'service-policy'])
  expect(await offered('get', 'service', '')).toEqual(['web'])
  expect(await offered('create', 'authenticator', 'p')).toEqual(['password@'])
  expect(await offered('update', 'service', 'web', 'enc')).toEqual([])
  expect(await offered('update', 'service', 'web', 'con')).toEqual(['configs='])
  expect(await offered('context', 'use', '')).toEqual([new URL(person.origin).host])
  expect(await offered('get', 'nothing', '')).toEqual([])
})

test('completion prints a script for each shell', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    expect(await person.out('completion', shell)).toContain('complete-words')
  }
  expect((await run(['completion', 'csh'])).code).toBe(2)
})
