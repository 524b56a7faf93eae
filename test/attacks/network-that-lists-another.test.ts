import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import type { ContextFile } from '../../src/cli/client/context-file.ts'
import { writeSecretFile } from '../../src/pki/secret-file.ts'
import { runHere } from '../cli/run-here.ts'
import type { Finished } from '../cli/support.ts'
import { HostileServer } from './support/hostile-server.ts'

// The attack: the owner of a network to which the user has logged in once, and whose CA the user
// has accepted, makes its controllers list the address of another network. An impostor with a
// certificate of that CA listens there, so that the program sends the password to the impostor
// without asking.

let hostile: HostileServer
let other: HostileServer
let home: string
beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'flotilla-home-'))
  hostile = await HostileServer.open()
  other = await HostileServer.open(hostile.ca)
  hostile.answer = answerOf(other.origin)
  other.answer = answerOf(other.origin)
  writeFileSync(join(home, 'hostile.pem'), hostile.ca.certificatePem)
  writeSecretFile(join(home, 'password'), 'the password of the other network\n')
})
afterEach(async () => {
  await Promise.all([hostile.close(), other.close()])
  rmSync(home, { recursive: true })
})

const answerOf =
  (listed: string): HostileServer['answer'] =>
  ({ path }) => {
    if (path.endsWith('/authenticate')) {
      return { body: { data: { token: 'token', identity: { name: 'admin' } }, meta: {} } }
    }
    if (!path.endsWith('/controllers')) return null
    const apiAddresses = { 'edge-management': [{ url: listed }] }
    return { body: { data: [{ apiAddresses }], meta: {} } }
  }

const run = (...words: string[]): Promise<Finished> => runHere(words, { XDG_CONFIG_HOME: home })
const logIn = (url: string, ...flags: string[]): Promise<Finished> =>
  run('login', url, '--user', 'admin', '--password-file', join(home, 'password'), ...flags)
const contexts = (): ContextFile['contexts'] =>
  (JSON.parse(readFileSync(join(home, 'flotilla/contexts.json'), 'utf8')) as ContextFile).contexts

async function poisoned(...flags: string[]): Promise<void> {
  const done = await logIn(hostile.origin, '--ca', join(home, 'hostile.pem'), ...flags)
  expect([done.code, done.stderr]).toEqual([0, ''])
}

/** Expects that the program has sent nothing that only a trusted controller may receive. */
function expectNothingSecret(): void {
  const sent = JSON.stringify(other.requests)
  expect([sent.includes('the password'), sent.includes('/authenticate')]).toEqual([false, false])
}

test('a log-in at another network’s address does not trust the CA of the network whose server listed this address', async () => {
  await poisoned()
  expect(Object.values(contexts())).toMatchObject([
    { controllers: [hostile.origin, other.origin], named: [hostile.origin] },
  ])
  const done = await logIn(other.origin)
  expect([done.code, done.stderr]).toEqual([
    1,
    `flotilla: ${other.origin}: unknown CA, and no CA certificates in its response; pass them with --ca FILE\n`,
  ])
  expectNothingSecret()
})

test('a log-in with --context does not trust the CA of that context at an address that only a server of its network has listed', async () => {
  await poisoned('--context', 'net')
  expect((await logIn(other.origin, '--context', 'net')).code).toBe(1)
  expectNothingSecret()
})

test('a command with --url sends no session to an address that only the network’s server listed', async () => {
  await poisoned()
  const done = await run('cluster', 'status', '--url', other.origin)
  expect([done.code, done.stderr]).toEqual([
    2,
    `flotilla: --url needs a session: log in with flotilla login ${other.origin}, or pass --ca FILE and --session-file FILE\n`,
  ])
  expect(other.requests).toEqual([])
})

test('the suggested log-in command contains no address that only a server has listed', async () => {
  await poisoned('--context', 'net')
  await hostile.close()
  expect((await run('list', 'identities')).code).toBe(0)
  expect(contexts()['net']?.controllers[0]).toBe(other.origin)
  await run('logout')
  expect((await run('list', 'identities')).stderr).toBe(
    `flotilla: not logged in to net; log in with: flotilla login ${hostile.origin} --user admin --context net\n`,
  )
})

test('a context of an earlier release is selected only by the address in the context’s name', async () => {
  await poisoned()
  const name = new URL(hostile.origin).host
  const { named: _, ...old } = contexts()[name] ?? { named: [] }
  mkdirSync(join(home, 'flotilla'), { recursive: true })
  writeSecretFile(
    join(home, 'flotilla/contexts.json'),
    JSON.stringify({ current: name, contexts: { [name]: old } }),
  )
  expect((await logIn(other.origin)).code).toBe(1)
  expectNothingSecret()
  expect((await logIn(hostile.origin)).code).toBe(0)
})
