import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'

import { readContexts } from '../../../src/cli/client/context-file.ts'
import { OidcProviderClient } from '../../../src/cli/client/oidc-provider-client.ts'
import { SessionTokens } from '../../../src/cli/client/session-tokens.ts'
import { openRestSession } from '../../../src/cli/log-in/rest-session.ts'
import { writeSecretFile } from '../../../src/pki/secret-file.ts'
import { CallerOf, client as clientApi, management } from '../../api/support/caller.ts'
import { admin } from '../../api/support/controller.ts'
import { turnOnMfa } from '../../api/support/mfa.ts'
import { clientKey } from '../../api/support/tls.ts'
import { freePort } from '../../support/ports.ts'
import { Administrator } from '../client/support.ts'

// Goal: if a cluster offers OpenID Connect, a log-in at the terminal uses it, lasts as long as it
// is used, and ends on request; its tokens are visible to no one.

let person: Administrator
beforeAll(async () => {
  person = await Administrator.open()
})
afterAll(() => person.close())

interface Held {
  token: string | null
  renewal: { refreshToken: string; expiresAtMs: number } | null
  controllers: string[]
}
interface Stored {
  current: string | null
  contexts: Record<string, Held>
}
const path = (): string => join(person.folder, 'flotilla', 'contexts.json')
const stored = (): Stored => JSON.parse(readFileSync(path(), 'utf8')) as Stored
function context(name = 'net'): Held {
  const found = stored().contexts[name]
  if (found === undefined) throw new Error(`unknown context ${name}`)
  return found
}
function change(edit: (held: Held) => void, name = 'net'): void {
  const file = stored()
  const held = file.contexts[name]
  if (held !== undefined) edit(held)
  writeSecretFile(path(), JSON.stringify(file))
}
/** Makes the access token expire before the next request. */
const endSoon = (): void =>
  change(({ renewal }) => {
    if (renewal !== null) renewal.expiresAtMs = Date.now() + 1000
  })
const statusOf = async (token: string): Promise<number> => {
  const headers = { authorization: `Bearer ${token}` }
  const path = `${management}/current-identity`
  return (await person.cluster.listener.call({ method: 'GET', path, headers })).status
}

beforeEach(() => person.logIn('--context', 'net'))

describe('a log-in by password', () => {
  test('uses the code flow, and prints no token', async () => {
    const done = await person.logIn('--context', 'net')
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(done.stdout).toBe(
      `logged in to ${person.origin} as Default Admin; current context: net\n`,
    )
    const { token, renewal } = context()
    expect(token).toMatch(/^ey/)
    expect(renewal?.refreshToken).toMatch(/^ey/)
    expect(renewal?.expiresAtMs).toBeGreaterThan(Date.now() + 25 * 60_000)
    expect((statSync(path()).mode & 0o777).toString(8)).toBe('600')
    expect(await person.out('list', 'identities')).toContain('Default Admin')
  })

  test('is refused with one sentence if the password is wrong', async () => {
    const wrong = person.secret('wrong', 'not the password')
    const ca = person.file('ca.pem', person.caPem)
    const flags = ['--user', 'admin', '--password-file', wrong, '--ca', ca]
    const done = await person.run('login', person.origin, ...flags)
    expect([done.code, done.stderr]).toEqual([3, expect.stringMatching(/log-in refused: .*wrong/)])
  })

  test('requires the second factor of an identity that has one', async () => {
    const { controller } = person.cluster
    const username = 'gustav'
    const made = await person.cluster.ask('POST', '/identities', {
      name: username,
      type: 'User',
      isAdmin: true,
    })
    const password = 'a long enough password'
    await person.cluster.ask('POST', '/authenticators', {
      method: 'updb',
      identityId: made['id'],
      username,
      password,
    })
    const caller = new CallerOf(controller)
    await caller.logIn({ username, password }, clientApi)
    const app = await turnOnMfa(controller, caller)
    const flags = ['--user', username, '--password-file', person.secret('gustav', password)]
    const words = ['login', person.origin, ...flags, '--ca', person.file('ca.pem', person.caPem)]
    const without = await person.run(...words, '--context', 'gustav')
    expect([without.code, without.stderr]).toEqual([
      3,
      expect.stringContaining('pass --code-file FILE'),
    ])
    const wrong = await person.run(...words, '--code-file', person.secret('code', '000000'))
    expect([wrong.code, wrong.stderr]).toEqual([3, expect.stringContaining('the code is wrong')])
    const [code = ''] = app.recoveryCodes
    const right = person.secret('code', code)
    const done = await person.run(...words, '--code-file', right, '--context', 'gustav')
    expect([done.code, done.stderr]).toEqual([0, ''])
    expect(done.stdout).toContain('as gustav')
    expect(await person.out('list', 'identities', '--context', 'gustav')).toContain('gustav')
  })

  test('continues at the next controller when the first one is unreachable', async () => {
    const away = `https://127.0.0.1:${await freePort()}`
    const flags = ['--user', admin.username, '--password-file', person.secret('p', admin.password)]
    const ca = ['--ca', person.file('ca.pem', person.caPem)]
    const done = await person.run('login', away, person.origin, ...flags, ...ca)
    expect(done.code).toBe(0)
  })
})

test('a log-in by certificate yields tokens that are valid only with the key of the certificate', async () => {
  const { id: caId, key } = await person.cluster.verifiedCa('staff')
  const { id, jwt } = await person.cluster.newToken({ ottca: caId })
  const own = await clientKey(key, 'me', Date.now())
  const [cert, file] = [person.file('me.pem', own.certificatePem), join(person.folder, 'me.key')]
  writeSecretFile(file, own.privateKeyPem)
  const flags = ['--client-cert', cert, '--client-key', file]
  await person.out('identity', 'enroll', person.file('me.jwt', jwt), ...flags)
  await person.cluster.ask('PATCH', `/identities/${id}`, { isAdmin: true })
  const ca = person.file('ca.pem', person.caPem)
  const words = ['login', person.origin, '--cert', cert, '--key', file, '--ca', ca]
  await person.out(...words, '--context', 'by-cert')
  expect(await person.out('list', 'identities', '--context', 'by-cert')).toContain('Default Admin')
  expect(await statusOf(String(context('by-cert').token))).toBe(401)
  change(({ renewal }) => {
    if (renewal !== null) renewal.expiresAtMs = 0
  }, 'by-cert')
  expect(await person.out('list', 'identities', '--context', 'by-cert')).toContain('Default Admin')
  await person.out('logout', '--context', 'by-cert')
})

test('a log-in at the REST API yields a session token that is not renewed, and a wrong password is refused', async () => {
  const opening = {
    controllers: [person.origin],
    caPem: person.caPem,
    method: { method: 'password', username: admin.username },
    code: () => Promise.reject(new Error('no second factor')),
  } as const
  const opened = await openRestSession({ ...opening, credential: { password: admin.password } })
  expect(opened).toMatchObject({ identity: 'Default Admin', renewal: null })
  expect(opened.token).toMatch(/^\d+\./)
  await expect(openRestSession({ ...opening, credential: { password: 'wrong' } })).rejects.toThrow(
    /log-in refused: .*wrong/,
  )
})

describe('a stored session', () => {
  test('renews a token that is about to expire before using the token, and stores the new tokens', async () => {
    const before = context()
    endSoon()
    await person.out('list', 'identities')
    const after = context()
    expect(after.token).not.toBe(before.token)
    expect(after.renewal?.expiresAtMs).toBeGreaterThan(Date.now() + 25 * 60_000)
    expect(await statusOf(String(after.token))).toBe(200)
  })

  test('renews its token once if a controller considers the token expired, and the command continues', async () => {
    const before = context()
    person.cluster.controller.clock.advance(31 * 60_000)
    try {
      expect(await person.out('list', 'identities')).toContain('Default Admin')
      expect(context().token).not.toBe(before.token)
    } finally {
      person.cluster.controller.clock.advance(-31 * 60_000)
    }
  })

  test('is renewed by only one of many commands that run at the same time', async () => {
    endSoon()
    const found = readContexts(path()).contexts['net']
    if (found === undefined) throw new Error('no context')
    const refresh = vi.spyOn(OidcProviderClient.prototype, 'refresh')
    const commands = Array.from({ length: 5 }, () => new SessionTokens('net', found, '', path()))
    const tokens = await Promise.all(commands.map((one) => one.token()))
    expect(new Set(tokens).size).toBe(1)
    expect(tokens[0]).toBe(context().token)
    expect(refresh).toHaveBeenCalledTimes(1)
    refresh.mockRestore()
  })

  test('is renewed at the next controller when the first one is unreachable', async () => {
    const away = `https://127.0.0.1:${await freePort()}`
    endSoon()
    change((held) => {
      held.controllers = [away, person.origin]
    })
    expect(await person.out('list', 'identities')).toContain('Default Admin')
    expect(context().controllers[0]).toBe(person.origin)
  })

  test('is reported as ended, with the command for a new log-in, if another program has ended it', async () => {
    const { refreshToken: token } = context().renewal ?? { refreshToken: '' }
    const body = new URLSearchParams({ token, client_id: 'native' }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    await person.cluster.listener.call({ path: '/oidc/revoke', body, headers })
    for (const early of [false, true]) {
      if (early) endSoon()
      const done = await person.run('list', 'identities')
      expect([done.code, done.stderr]).toEqual([
        3,
        expect.stringMatching(/session has expired or was ended; log in again: flotilla login/),
      ])
    }
  })

  test('ends with a log-out, after which both of its tokens are invalid', async () => {
    const { token, renewal } = context()
    await person.out('list', 'identities')
    await person.out('logout')
    expect(context()).toMatchObject({ token: null, renewal: null })
    expect(await statusOf(String(token))).toBe(401)
    const { listener } = person.cluster
    const form = {
      grant_type: 'refresh_token',
      client_id: 'native',
      refresh_token: renewal?.refreshToken ?? '',
    }
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const body = new URLSearchParams(form).toString()
    expect((await listener.call({ path: '/oidc/oauth/token', body, headers })).status).toBe(400)
  })
})
