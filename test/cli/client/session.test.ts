import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { parseCertificate } from '../../../src/pki/certificate.ts'
import { writeSecretFile } from '../../../src/pki/secret-file.ts'
import { admin, user } from '../../api/support/controller.ts'
import { clientKey } from '../../api/support/tls.ts'
import { newCa } from '../../support/authorities.ts'
import { freePort } from '../../support/ports.ts'
import { Administrator } from './support.ts'

// Goal: every command uses the same log-in, the token is visible to no one, and the server is
// verified before a password is sent.

let person: Administrator
beforeAll(async () => {
  person = await Administrator.open()
})
afterAll(() => person.close())
beforeEach(() => {
  rmSync(folder(), { recursive: true, force: true })
})

const folder = (): string => join(person.folder, 'flotilla')
const contexts = (): string => join(folder(), 'contexts.json')
interface Stored {
  current: string | null
  contexts: Record<string, { controllers: string[]; caPem: string | null; token: string | null }>
}
const stored = (): Stored => JSON.parse(readFileSync(contexts(), 'utf8')) as Stored
const context = (name: string) => {
  const found = stored().contexts[name]
  if (found === undefined) throw new Error(`unknown context ${name}`)
  return found
}
const password = (): string => person.secret('password', admin.password)
const fingerprint = (): string => {
  const { sha256 } = parseCertificate(person.caPem)
  return (sha256.toUpperCase().match(/../g) ?? []).join(':')
}

test('a log-in stores the session in a file that only its owner can read, and prints no token', async () => {
  const done = await person.logIn('--context', 'prod')
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(done.stdout).toBe(
    `logged in to ${person.origin} as Default Admin; current context: prod\n`,
  )
  const { token } = context('prod')
  expect(token).toMatch(/^ey/)
  expect(done.stdout).not.toContain(token)
  expect((statSync(contexts()).mode & 0o777).toString(8)).toBe('600')
  // The first one is the controller that the user named; the others are the remaining controllers
  // of the cluster.
  expect(context('prod').controllers).toEqual([
    person.origin,
    'https://localhost:1280',
    'https://localhost:1281',
  ])
})

test('contexts can be listed without secrets, selected and removed, and a log-out ends the session', async () => {
  await person.logIn('--context', 'one')
  await person.logIn('--context', 'two')
  const listed = await person.out('context', 'list')
  expect(listed).toMatch(/^\* +two +admin +yes/m)
  expect(listed).not.toContain(String(context('one').token))
  await person.out('context', 'use', 'one')
  expect(stored().current).toBe('one')
  const { token } = context('one')
  await person.out('logout')
  expect(context('one').token).toBeNull()
  const path = '/edge/management/v1/current-identity'
  const headers = { authorization: `Bearer ${String(token)}` }
  const answer = await person.cluster.listener.call({ method: 'GET', path, headers })
  expect(answer.status).toBe(401)
  await person.out('context', 'remove', 'two')
  expect(Object.keys(stored().contexts)).toEqual(['one'])
  const away = await person.run('context', 'use', 'three')
  expect([away.code, away.stderr]).toEqual([
    4,
    'flotilla: unknown context three; known contexts: one\n',
  ])
})

test('login refuses an unknown CA and shows its fingerprint, until the user passes this fingerprint; later log-ins trust the CA', async () => {
  const words = ['login', person.origin, '--user', 'admin', '--password-file', password()]
  const refused = await person.run(...words)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain(`--fingerprint ${fingerprint()}\n`)
  const done = await person.run(...words, '--fingerprint', fingerprint().toLowerCase())
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(context(new URL(person.origin).host).caPem).toContain('BEGIN CERTIFICATE')
  // The CA is known after the first log-in.
  const again = await person.run(...words)
  expect([again.code, again.stderr]).toEqual([0, ''])
})

test('login refuses a fingerprint or a CA file that does not match the CA of the controller', async () => {
  const words = ['login', person.origin, '--user', 'admin', '--password-file', password()]
  const other = await person.run(...words, '--fingerprint', 'ab'.repeat(32))
  expect([other.code, other.stderr]).toEqual([
    1,
    expect.stringContaining('none of its CA certificates has that fingerprint'),
  ])
  const { certificatePem } = await newCa('foreign', Date.now())
  const foreign = await person.run(...words, '--ca', person.file('foreign.pem', certificatePem))
  expect([foreign.code, foreign.stderr]).toEqual([
    5,
    expect.stringContaining('presented a certificate of an unknown CA'),
  ])
  expect(existsSync(contexts())).toBe(false)
})

test('login accepts a certificate and its key', async () => {
  const { id: caId, key } = await person.cluster.verifiedCa('staff')
  const { jwt } = await person.cluster.newToken({ ottca: caId })
  const own = await clientKey(key, 'me', Date.now())
  const [cert, file] = [person.file('me.pem', own.certificatePem), join(person.folder, 'me.key')]
  writeSecretFile(file, own.privateKeyPem)
  const flags = ['--client-cert', cert, '--client-key', file]
  await person.out('identity', 'enroll', person.file('me.jwt', jwt), ...flags)
  const ca = person.file('ca.pem', person.caPem)
  const words = ['login', person.origin, '--cert', cert, '--key', file, '--ca', ca]
  const done = await person.run(...words, '--context', 'by-cert')
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(context('by-cert').token).not.toBeNull()
})

test('login reports a wrong password, a missing password and two log-in methods in one command, each in one sentence', async () => {
  const ca = ['--ca', person.file('ca.pem', person.caPem)]
  const wrong = person.secret('wrong', 'not the password')
  for (const [flags, sentence, code] of [
    [['--user', 'admin', '--password-file', wrong, ...ca], /log-in refused: .*wrong/, 3],
    [['--user', 'admin', ...ca], /no terminal .* --password-file FILE/, 2],
    [[...ca], /name the user: --user NAME/, 2],
    [['--user', 'admin', '--browser', ...ca], /log in in one way/, 2],
    [['--cert', 'a', ...ca], /--cert and --key must be given together/, 2],
    [['--user', 'admin', '--fingerprint', 'abc'], /--fingerprint: expected .*64 hex/, 2],
  ] as const) {
    const done = await person.run('login', person.origin, ...flags)
    expect(done.stderr).toMatch(sentence)
    expect([done.code, done.stderr.trimEnd().split('\n').length]).toEqual([code, 1])
  }
  expect((await person.run('login', 'http://a:1', '--user', 'x')).code).toBe(2)
  expect((await person.run('context', 'use', 'x')).stderr).toContain(
    'create one with: flotilla login',
  )
})

test('a command uses the next controller if the first one is unreachable, and stores the reachable one as the first', async () => {
  await person.logIn('--context', 'prod')
  const away = `https://127.0.0.1:${await freePort()}`
  const file = stored()
  const prod = { ...context('prod'), controllers: [away, person.origin] }
  writeSecretFile(contexts(), JSON.stringify({ ...file, contexts: { prod } }))
  await person.out('list', 'identities')
  expect(context('prod').controllers).toEqual([person.origin, away])
})

test('a context file that is invalid or that other users can read is refused with advice on how to fix it', async () => {
  mkdirSync(folder())
  writeFileSync(contexts(), '{}', { mode: 0o600 })
  expect((await person.run('context', 'list')).stderr).toMatch(/not a file of contexts/)
  chmodSync(contexts(), 0o644)
  expect((await person.run('context', 'list')).stderr).toMatch(/chmod 600/)
})

test('an identity without rights can log in, and its stored context contains every controller of the cluster', async () => {
  const flags = ['--user', user.username, '--password-file', person.secret('own', user.password)]
  const ca = ['--ca', person.file('ca.pem', person.caPem)]
  const done = await person.run('login', person.origin, ...flags, ...ca, '--context', 'alice')
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(context('alice').controllers).toEqual([
    person.origin,
    'https://localhost:1280',
    'https://localhost:1281',
  ])
})
