import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { onboardingLimits } from '../../../src/cli/onboarding/identity-lines.ts'
import { Administrator } from '../client/support.ts'

// Goal: one command creates the identities in a list of people or devices, can be repeated, and
// changes nothing if the list is faulty.

let person: Administrator
let tokens = ''
beforeAll(async () => {
  person = await Administrator.loggedIn()
  tokens = join(person.folder, 'tokens')
})
afterAll(() => person.close())

const imported = (text: string, ...flags: string[]) =>
  person.run('identity', 'import', person.file('people.csv', text), '--tokens', tokens, ...flags)
const names = () => person.out('list', 'identities', '--all', '--sort', 'name', '-o', 'name')

describe('identity import', () => {
  test('reports several faulty lines in one run, and creates nothing', async () => {
    const before = await names()
    const text = [
      'name,roleAttributes,type,authPolicy,isAdmin',
      'anna,staff,Default,Default,false',
      ',staff,,,',
      'bill,#staff,Device,,',
      'carl,,,Nobody,',
      'dora,,Gadget,,',
      'anna,,,,',
      'emil,,,,perhaps',
      'finn,a,b,c,d,e',
      '"gina',
    ].join('\n')
    const done = await imported(text)
    expect([done.code, done.stdout]).toEqual([2, ''])
    expect(done.stderr.replaceAll(`${person.folder}/`, '').split('\n')).toEqual([
      'flotilla: nothing was changed',
      'people.csv: line 10: a quoted cell does not end',
      '',
    ])
    const closed = await imported(text.replace('"gina', 'gina'))
    expect(closed.stderr.replaceAll(`${person.folder}/`, '').split('\n')).toEqual([
      'flotilla: nothing was changed',
      'people.csv: line 3: name must be given',
      'people.csv: line 6: type: expected User, Device, Service, Router, Default, found "Gadget"',
      'people.csv: line 7: "anna" is given twice, first on line 2',
      'people.csv: line 8: isAdmin: expected true or false, found "perhaps"',
      'people.csv: line 9: expected 5 cells, found 6; put a value with commas in quotes',
      '',
    ])
    const unknown = await imported('name,authPolicy\nanna,Default\ncarl,Nobody\ndora,Nobody\n')
    expect(unknown.stderr).toMatch(/line 3: no auth policy "Nobody".*\n.*line 4: no auth policy/)
    expect([unknown.code, await names()]).toEqual([2, before])
  })

  test('reports the line of a name with a control character, and no other line', async () => {
    const done = await imported('name,roleAttributes\nbad\x01name,staff\ngood,staff\n')
    expect(done.code).toBe(2)
    expect(done.stderr).toContain('line 2: a name contains control characters')
    expect(done.stderr).not.toContain('line 3')
  })

  test.each([
    ['', 'line 1: the file is empty'],
    ['nam\nanna\n', 'line 1: an identity has no field "nam"; did you mean name?'],
    ['type\nDevice\n', 'line 1: the column "name" is missing; the first line names them'],
    ['name,name\na,b\n', 'line 1: the column "name" is given twice'],
    ['name,\na,b\n', 'line 1: column 2 has no name'],
    ['name\nan"na\n', 'line 2: a cell with a quote must be in quotes, with "" for it'],
    [
      `name\n${'x\n'.repeat(onboardingLimits.identitiesMax + 1)}`,
      'expected at most 10000 identities',
    ],
  ])('refuses the file %j', async (text, sentence) => {
    const done = await imported(text)
    expect([done.code, done.stdout]).toEqual([2, ''])
    expect(done.stderr).toContain(sentence)
  })

  test('creates each identity, and writes its token to a file that only its owner can read', async () => {
    const rows = Array.from({ length: 55 }, (_, at) => `device-${at},"b,a",${at}`)
    const done = await imported(
      ['name,roleAttributes,tags.desk', ...rows, 'O/Brien,x;y,0'].join('\r\n'),
    )
    expect([done.code, done.stdout, done.stderr]).toEqual([
      0,
      `56 created, 0 existed; 56 enrollment tokens in ${tokens}\n`,
      'flotilla: 50 of 56 identities\n',
    ])
    expect(readdirSync(tokens)).toHaveLength(56)
    expect(statSync(tokens).mode & 0o777).toBe(0o700)
    expect(statSync(join(tokens, 'O%2FBrien.jwt')).mode & 0o777).toBe(0o600)
    const made = JSON.parse(await person.out('get', 'identity', 'device-7', '-o', 'json')) as object
    expect(made).toMatchObject({
      roleAttributes: ['a', 'b'],
      tags: { desk: 7 },
      type: { name: 'Default' },
    })
    const out = join(person.folder, 'device-7.json')
    await person.out('identity', 'enroll', join(tokens, 'device-7.jwt'), '--out', out)
    expect(JSON.parse(readFileSync(out, 'utf8'))).toHaveProperty('ztAPI')
  })

  test('resumes after an interruption: existing identities are kept, and unused tokens are written again', async () => {
    rmSync(tokens, { recursive: true })
    const before = await person.out('get', 'identity', 'device-8', '-o', 'json')
    const text = 'name,roleAttributes\ndevice-7,z\ndevice-8,z\nnew,z\n'
    const done = await imported(text)
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(done.stdout).toBe(
      `line 2: device-7 exists and stays unchanged\nline 3: device-8 exists and stays unchanged\n1 created, 2 existed; 2 enrollment tokens in ${tokens}\n`,
    )
    expect(readdirSync(tokens).sort()).toEqual(['device-8.jwt', 'new.jwt'])
    expect(await person.out('get', 'identity', 'device-8', '-o', 'json')).toBe(before)
    const again = await imported(text, '-o', 'json')
    expect(JSON.parse(again.stdout)).toEqual({
      created: [],
      existing: ['device-7', 'device-8', 'new'],
      tokens: [join(tokens, 'device-8.jwt'), join(tokens, 'new.jwt')],
    })
  })

  test('prints how many identities it has created if the cluster refuses one', async () => {
    const done = await imported('name,externalId\nfirst,e-1\nsecond,e-1\n')
    expect([done.code, done.stdout]).toEqual([1, ''])
    expect(done.stderr).toMatch(
      /cannot create identity second of line 3: externalId.*; 1 of 2 identities done, rerun the same command to continue\n$/,
    )
  })

  test('writes enrollment tokens for the given user names', async () => {
    const done = await imported('name,enrollment.updb\numa,uma.berg\n')
    expect([done.code, done.stderr]).toEqual([0, ''])
    const [, payload = ''] = readFileSync(join(tokens, 'uma.jwt'), 'utf8').split('.')
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toMatchObject({ em: 'updb' })
  })
})
