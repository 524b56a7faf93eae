import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

import { allKinds, kindById, kindSynonyms } from '../../../src/cli/records/kinds.ts'
import { printRow } from '../../../src/cli/records/table.ts'
import { user } from '../../api/support/controller.ts'
import { Administrator } from '../client/support.ts'

// Goal: a wrong input is refused with one sentence that says what is correct, and changes nothing.

let person: Administrator
beforeAll(async () => {
  person = await Administrator.loggedIn()
  for (const name of ['web', 'wiki', 'mail']) {
    await person.out('create', 'service', `name=${name}`, 'encryptionRequired=true')
  }
  await person.out('create', 'identity', 'name=berta', 'tags.location=here', 'tags.a b.c=1')
  person.file('bad.yml', 'name: x\nencryptionRequired: true\nroleAtributes: [a]\n')
  person.file('nested.yml', 'name: x\nprimary:\n  cert:\n    alowed: true\n')
})
afterAll(() => person.close())

/** Kind, ID and digest of every record of the controller. */
const storedRecords = (): string[] =>
  [...person.cluster.controller.state.tables].flatMap(([kind, { rows }]) =>
    [...rows].map(([id, { lanes }]) => `${kind} ${id} ${JSON.stringify(lanes)}`),
  )

const words = (line: string): string[] =>
  line.replaceAll('FOLDER', person.folder).split(' ').filter(Boolean)

describe('invalid input for a command on records', () => {
  test.each([
    ['get srvice web', 2, 'unknown kind "srvice"; did you mean service?'],
    ['get service wik', 4, 'no service "wik"; did you mean wiki?'],
    ['get service zzzzzz', 4, 'no service "zzzzzz"; flotilla list services shows them'],
    ['get session nobody', 4, 'no session with the id "nobody"'],
    ['create service nam=x', 2, 'a service has no field "nam"; did you mean name?'],
    [
      'create service name=x',
      2,
      'create service: encryptionRequired must be given; see flotilla explain service',
    ],
    [
      'create service name=x encryptionRequired=yes',
      2,
      'encryptionRequired: expected true or false, found "yes"',
    ],
    ['create service name=x encryptionRequired=true --for 7d', 2, 'a service has no end'],
    [
      'update identity berta --until 2099-01-01T00:00:00Z',
      2,
      'an identity has no end; use roleAttributesExpireAt.ATTRIBUTE=TIME',
    ],
    [
      'create sp name=x type=Dial semantic=AnyOf --for soon',
      2,
      '--for: expected a duration such as 7d, 12h or 90m, found "soon"',
    ],
    [
      'create sp name=x type=Dial semantic=AnyOf expiresAt=tomorrow',
      2,
      'expiresAt: expected a time such as 2030-01-31T18:00:00Z, or a duration from now such as 7d, found "tomorrow"',
    ],
    [
      'create sp name=x type=Dial semantic=AnyOf --for 7d --until 2099-01-01T00:00:00Z',
      2,
      'give --until or --for, not both',
    ],
    ['create service name=x permissions=a', 2, 'permissions of a service is read-only'],
    [
      'create sp name=x type=Dia semantic=AnyOf',
      2,
      'type: expected Dial, Bind, found "Dia"; did you mean Dial?',
    ],
    [
      'create sp name=x type=Dial semantic=AnyOf serviceRoles=@wik',
      4,
      'no service "wik"; did you mean wiki?',
    ],
    [
      'create service name=web encryptionRequired=true',
      1,
      'cannot create service web: name must be unique',
    ],
    [
      'create service name=x encryptionRequired=true maxIdleTimeMillis=-1',
      1,
      'cannot create service x: maxIdleTimeMillis in body should be greater than or equal to 0',
    ],
    [
      'update service web encryptionRequired=false',
      2,
      'encryptionRequired of a service can only be set at creation',
    ],
    ['update service web', 2, 'nothing to change; pass FIELD=VALUE, or -f FILE'],
    ['update service web name', 2, 'expected FIELD=VALUE or FIELD@FILE, found "name"'],
    ['update identity berta permissions=none', 1, /^cannot update identity berta: permissions/],
    [
      'create authenticator method=updb identity=berta username=berta password=open',
      2,
      'password is a secret, and command lines are visible to other users; use password@FILE, or password@- for standard input',
    ],
    [
      'create service -f FOLDER/bad.yml',
      2,
      /bad\.yml: line 3: a service has no field "roleAtributes"; did you mean roleAttributes\?$/,
    ],
    [
      'create ap -f FOLDER/nested.yml',
      2,
      /nested\.yml: line 4: primary\.cert has no member "alowed"$/,
    ],
    ['create ap name=x primary.cert.alowed=true', 2, /^primary\.cert has no member "alowed"/],
    ['create service -f FOLDER/none.yml', 2, /^-f: .*none\.yml cannot be read/],
    ['list services --filter nme="x"', 1, /^unknown symbol|filter/],
    ['list services --sort nme', 1, /./],
    ['list services --fields nme', 2, 'a service has no field "nme"; did you mean name?'],
    ['list services --all --limit 3', 2, '--all and --limit exclude each other'],
    ['delete controller ctrl1 --yes', 2, 'controllers cannot be deleted'],
    ['delete identity berta nobody --yes', 4, /^no identity "nobody"/],
    ['get service web --context nowhere', 4, /^unknown context nowhere; known contexts: /],
  ])('is refused in one sentence, and changes no record: %s', async (line, code, sentence) => {
    const before = storedRecords()
    const done = await person.run(...words(line))
    const said = done.stderr.replace(/^flotilla: /, '').trimEnd()
    if (typeof sentence === 'string') expect(said).toBe(sentence)
    else expect(said).toMatch(sentence)
    expect([done.code, done.stdout, said.split('\n').length]).toEqual([code, '', 1])
    expect(storedRecords()).toEqual(before)
  })

  test('is avoided by list -o name, which prints the ID instead of a name that looks like an option', async () => {
    const named = await person.out('create', 'service', 'name=--yes', 'encryptionRequired=true')
    const id = / id (\S+)/.exec(named)?.[1] ?? ''
    expect(await person.out('list', 'services', '--filter', 'name = "--yes"', '-o', 'name')).toBe(
      `${id}\n`,
    )
    await person.out('delete', 'service', id, '--yes')
  })
})

test('if an id looks like an option, the command line also prints how to pass this id to other commands', () => {
  const written: string[] = []
  const write = (text: unknown): boolean => written.push(String(text)) > 0
  const spies = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, 'write').mockImplementation(write),
  )
  printRow(kindById('service'), { id: '-a1', name: '--yes' }, 'name')
  for (const spy of spies) spy.mockRestore()
  expect(written).toEqual(['-a1\n', 'flotilla: pass -a1 to other commands after the word --\n'])
})

test('no two kinds of records have a common name in the command line', () => {
  const all = allKinds().flatMap(kindSynonyms)
  expect(all.filter((word, at) => all.indexOf(word) !== at)).toEqual([])
})

test('the name of a record that is also the ID of another record is refused as ambiguous', async () => {
  const { id } = JSON.parse(await person.out('get', 'service', 'web', '-o', 'json')) as {
    id: string
  }
  await person.out('create', 'service', `name=${id}`, 'encryptionRequired=true')
  const done = await person.run('delete', 'service', id, '--yes')
  expect([done.code, done.stderr]).toEqual([
    1,
    expect.stringMatching(/is the id of one service and the name of another/),
  ])
  await person.out('delete', 'service', 'web', '--yes')
  await person.out('delete', 'service', id, '--yes')
})

test('changing one member of a map with update keeps the other members of the map', async () => {
  await person.out('update', 'identity', 'berta', 'tags.location=there', 'tags.floor=3')
  const { tags } = JSON.parse(await person.out('get', 'identity', 'berta', '-o', 'json')) as {
    tags: unknown
  }
  expect(tags).toEqual({ location: 'there', floor: 3, 'a b.c': 1 })
})

test('a table shows names instead of IDs, and each of its cells has one line', async () => {
  await person.out('create', 'config-type', 'name=anything')
  await person.out('create', 'config', 'name=c1', 'configType=anything', 'data={}')
  await person.out('update', 'service', 'wiki', 'configs=c1', `roleAttributes=${'a'.repeat(60)}`)
  const table = await person.out(
    'list',
    'services',
    '--sort',
    'name',
    '--fields',
    'name,configs,roleAttributes',
  )
  expect(`\n${table}`).toMatchInlineSnapshot(`
    "
    name  configs  roleAttributes
    mail  -        -
    wiki  c1       aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…
    "
  `)
})

test('a deletion is refused if other records reference the record; with --force the record is deleted, and the others are listed', async () => {
  await person.out('create', 'config-type', 'name=plain')
  await person.out('create', 'config', 'name=shared', 'configType=plain', 'data={}')
  await person.out('update', 'service', 'mail', 'configs=shared')
  const inUse = await person.run('delete', 'config', 'shared', '--yes')
  expect([inUse.code, inUse.stdout, inUse.stderr]).toEqual([
    1,
    '',
    'flotilla: config shared is in use by service mail; nothing was deleted. Take it off them, or add --force\n',
  ])
  const { code, stdout, stderr } = await person.run('delete', 'config', 'shared', '--force')
  expect([code, stdout]).toEqual([0, 'deleted config shared\n'])
  expect(stderr).toMatch(
    /^flotilla: delete config shared: it was taken off services [A-Za-z0-9._-]+\n$/,
  )
})

test('a refused deletion names ten records that refer to the record, and the number of the others', async () => {
  await person.out('create', 'config', 'name=much-used', 'configType=plain', 'data={}')
  const names = Array.from({ length: 24 }, (_, at) => `user-${String(at).padStart(2, '0')}`)
  for (const name of names) {
    await person.out(
      'create',
      'service',
      `name=${name}`,
      'encryptionRequired=true',
      'configs=much-used',
    )
  }
  const { stderr } = await person.run('delete', 'config', 'much-used', '--yes')
  const shown = stderr.match(/service user-\d\d/g)
  expect([shown?.length, stderr]).toEqual([10, expect.stringContaining(', 14 more; nothing was')])
})

test('an identity without permission sees the refusal, and a user whose session has ended sees the command to log in again', async () => {
  const flags = ['--user', user.username, '--password-file', person.secret('alice', user.password)]
  const ca = ['--ca', person.file('ca.pem', person.caPem), '--context', 'alice']
  await person.out('login', person.origin, ...flags, ...ca)
  const denied = await person.run('create', 'service', 'name=x', 'encryptionRequired=true')
  expect([denied.code, denied.stderr]).toEqual([
    3,
    'flotilla: cannot create service x: permission denied: the operation needs the permission service.create; ask an administrator\n',
  ])
  const filter = encodeURIComponent('identity = "alice-id"')
  const sessions = await person.cluster.ask('GET', `/api-sessions?filter=${filter}`)
  for (const { id } of sessions as unknown as { id: string }[]) {
    await person.cluster.ask('DELETE', `/api-sessions/${id}`)
  }
  const over = await person.run('list', 'services')
  expect([over.code, over.stderr]).toEqual([
    3,
    `flotilla: the session has expired or was ended; log in again: flotilla login ${person.origin} --user alice --context alice\n`,
  ])
})
