import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, type MockInstance, test, vi } from 'vitest'

import { ApiClient, type ApiRequest } from '../../../src/cli/client/api-client.ts'
import { UnreachableError } from '../../../src/client/client-errors.ts'
import { CommandFailure, EXIT_FAILED } from '../../../src/controller/command-failure.ts'
import { Administrator } from '../client/support.ts'

// Goal: one command gives a router or a device a new token, without showing the token anywhere
// else, and never loses the token.

const JWT = /^[\w-]+\.[\w-]+\.[\w-]+\n$/

let person: Administrator
beforeAll(async () => {
  person = await Administrator.loggedIn()
})
afterAll(() => person.close())

const at = (name: string): string => join(person.folder, name)

async function recordOf(kind: string, name: string): Promise<Record<string, unknown>> {
  return JSON.parse(await person.out('get', kind, name, '-o', 'json')) as Record<string, unknown>
}

/** Makes each read fail that follows a write. */
function loseConnectionAfterPost(): MockInstance {
  const ask = ApiClient.prototype.ask
  let isLost = false
  return vi.spyOn(ApiClient.prototype, 'ask').mockImplementation(async function (
    this: ApiClient,
    request: ApiRequest,
    shape,
  ) {
    if (isLost) {
      throw new CommandFailure(EXIT_FAILED, 'connection lost', new UnreachableError([]))
    }
    isLost = request.method === 'POST'
    return await (Reflect.apply(ask, this, [request, shape]) as ReturnType<typeof ask>)
  } as typeof ask)
}

describe('re-enroll edge-router', () => {
  const CONFIG = `v: 3
identity: {cert: r.cert, server_cert: r.server.cert, key: r.key, ca: r.ca}
csr: {sans: {dns: [router.test]}}
ctrl: {endpoint: "tls:127.0.0.1:6262"}
`
  beforeAll(async () => {
    await person.out('create', 'edge-router', 'name=edge1', 'roleAttributes=public')
    writeFileSync(at('router.yml'), CONFIG)
  })

  test('replaces the unused token of a router without a confirmation, and prints only the token on standard output', async () => {
    const before = await recordOf('edge-router', 'edge1')
    const done = await person.run('re-enroll', 'edge-router', 'edge1')
    expect(done.code, done.stderr).toBe(0)
    expect(done.stdout).toMatch(JWT)
    const now = await recordOf('edge-router', 'edge1')
    expect(done.stdout.trim()).toBe(now['enrollmentJwt'])
    expect(done.stdout.trim()).not.toBe(before['enrollmentJwt'])
    expect(done.stderr).toBe(
      `flotilla: edge router edge1 must enroll again with this token; it is valid until ${String(now['enrollmentExpiresAt'])}\n`,
    )
    writeFileSync(at('first.jwt'), done.stdout)
    const enrolled = await person.run(
      'router',
      'enroll',
      at('router.yml'),
      '--jwt',
      at('first.jwt'),
    )
    expect(enrolled.code, enrolled.stderr).toBe(0)
  })

  test('changes nothing without a confirmation if the router has a certificate', async () => {
    const done = await person.run('re-enroll', 'edge-router', 'edge1', '--out', at('no.jwt'))
    expect(done).toMatchObject({ code: 2, stdout: '' })
    expect(done.stderr).toContain(
      'no terminal to confirm the re-enrollment of edge router edge1, whose certificate becomes invalid; add --yes',
    )
    expect(await recordOf('edge-router', 'edge1')).toMatchObject({ isVerified: true })
    expect(existsSync(at('no.jwt'))).toBe(false)
  })

  test('changes nothing if the file of the token exists or cannot be created', async () => {
    writeFileSync(at('taken.jwt'), 'mine')
    for (const [path, reason] of [
      [at('taken.jwt'), 'already exists; choose another file'],
      [at('nowhere/edge1.jwt'), 'does not exist; create it, or choose another location'],
    ] as const) {
      const done = await person.run('re-enroll', 'edge-router', 'edge1', '--yes', '--out', path)
      expect(done).toMatchObject({ code: 1, stdout: '' })
      expect(done.stderr).toContain(reason)
    }
    expect(readFileSync(at('taken.jwt'), 'utf8')).toBe('mine')
    expect(await recordOf('edge-router', 'edge1')).toMatchObject({ isVerified: true })
  })

  test('writes the token to a file of mode 0600, with which the router enrolls again under its ID', async () => {
    const before = await recordOf('edge-router', 'edge1')
    const out = at('edge1.jwt')
    const done = await person.run('re-enroll', 'edge-router', 'edge1', '--yes', '--out', out)
    expect(done.code, done.stderr).toBe(0)
    expect(statSync(out).mode & 0o777).toBe(0o600)
    const token = readFileSync(out, 'utf8')
    expect(token).toMatch(JWT)
    expect(done.stdout + done.stderr).not.toContain(token.trim())
    expect(done.stdout).toContain(`edge router edge1 must enroll again with the token in ${out}; `)
    expect(await recordOf('edge-router', 'edge1')).toMatchObject({ isVerified: false })
    const words = ['router', 'enroll', at('router.yml'), '--jwt', out, '--force']
    expect(await person.run(...words)).toMatchObject({ code: 0 })
    expect(await recordOf('edge-router', 'edge1')).toMatchObject({
      id: before['id'],
      roleAttributes: ['public'],
      isVerified: true,
    })
  })

  test('prints JSON, which contains the token only if no file was given', async () => {
    const { id } = await recordOf('edge-router', 'edge1')
    const words = ['re-enroll', 'edge-router', String(id), '--yes', '--json']
    const out = at('json.jwt')
    const toFile = await person.out(...words, '--out', out)
    expect(JSON.parse(toFile)).toEqual({
      kind: 'edge-router',
      id,
      expiresAt: expect.any(String) as unknown,
      file: out,
    })
    const { token } = JSON.parse(await person.out(...words)) as { token: string }
    expect(`${token}\n`).toMatch(JWT)
  })
})

describe('re-enroll identity', () => {
  test('makes the certificate of the identity invalid, and the identity enrolls again under its ID', async () => {
    await person.out('create', 'identity', 'name=laptop', 'enrollment.ott=true')
    const { id } = await recordOf('identity', 'laptop')
    const { enrollment } = await recordOf('identity', 'laptop')
    const { jwt } = (enrollment as { ott: { jwt: string } }).ott
    writeFileSync(at('laptop.jwt'), jwt)
    await person.run('identity', 'enroll', at('laptop.jwt'), '--out', at('laptop.json'))
    expect((await recordOf('identity', 'laptop'))['authenticators']).toHaveProperty('cert')

    const out = at('again.jwt')
    const done = await person.run('re-enroll', 'identity', 'laptop', '--yes', '--out', out)
    expect(done.code, done.stderr).toBe(0)
    expect(done.stdout).toContain(`identity laptop must enroll again with the token in ${out}; `)
    expect(statSync(out).mode & 0o777).toBe(0o600)
    expect((await recordOf('identity', 'laptop'))['authenticators']).not.toHaveProperty('cert')
    const words = ['identity', 'enroll', out, '--out', at('laptop2.json')]
    expect(await person.run(...words)).toMatchObject({ code: 0 })
    const after = await recordOf('identity', 'laptop')
    expect(after['id']).toBe(id)
    expect(after['authenticators']).toHaveProperty('cert')
  })

  test('prints the command that shows or creates the token of an identity without a certificate', async () => {
    await person.out('create', 'identity', 'name=new', 'enrollment.ott=true')
    const { id, enrollment } = await recordOf('identity', 'new')
    const { id: token, jwt } = (enrollment as { ott: { id: string; jwt: string } }).ott
    const shown = await person.run('re-enroll', 'identity', 'new', '--yes')
    expect(shown).toMatchObject({ code: 1, stdout: '' })
    expect(shown.stderr).toContain(
      `identity new has no certificate, but has a token; show it with: flotilla get enrollment ${token}\n`,
    )
    expect(await recordOf('enrollment', token)).toMatchObject({ jwt })
    await person.out('delete', 'enrollment', token, '--yes')
    const none = await person.run('re-enroll', 'identity', 'new', '--yes')
    expect(none).toMatchObject({ code: 1, stdout: '' })
    expect(none.stderr).toContain(
      `identity new has no certificate; create a token with: flotilla create enrollment method=ott identityId=${String(id)} --for 24h`,
    )
  })

  test('names the authenticators of an identity with several certificates, and re-enrolls the chosen one', async () => {
    await person.out('create', 'identity', 'name=two', 'enrollment.ott=true')
    const jwtOf = async (): Promise<string> => {
      const { enrollment } = await recordOf('identity', 'two')
      return (enrollment as { ott: { jwt: string } }).ott.jwt
    }
    const { id } = await recordOf('identity', 'two')
    for (const name of ['a', 'b']) {
      if (name === 'b') {
        const words = ['method=ott', `identityId=${String(id)}`, '--for', '24h']
        await person.out('create', 'enrollment', ...words)
      }
      writeFileSync(at(`${name}.jwt`), await jwtOf())
      const words = ['identity', 'enroll', at(`${name}.jwt`), '--out', at(`${name}.json`)]
      expect(await person.run(...words)).toMatchObject({ code: 0 })
    }
    const done = await person.run('re-enroll', 'identity', 'two', '--yes')
    expect(done).toMatchObject({ code: 1, stdout: '' })
    const [, ids = ''] = /several certificates; .* authenticator ID: (.*)\n/.exec(done.stderr) ?? []
    const [first = '', second = ''] = ids.split(', ')
    expect(second).not.toBe('')
    const chosen = await person.run('re-enroll', 'authenticator', first, '--yes')
    expect(chosen.stdout, chosen.stderr).toMatch(JWT)
    expect(await person.run('get', 'authenticator', first)).toMatchObject({ code: 4 })
    expect(await person.run('get', 'authenticator', second)).toMatchObject({ code: 0 })
  })
})

describe('re-enroll', () => {
  test('says that the certificate is invalid and how to show the token, if the connection is lost after the re-enrollment', async () => {
    await person.out('create', 'identity', 'name=phone', 'enrollment.ott=true')
    const { enrollment } = await recordOf('identity', 'phone')
    writeFileSync(at('phone.jwt'), (enrollment as { ott: { jwt: string } }).ott.jwt)
    await person.out('identity', 'enroll', at('phone.jwt'), '--out', at('phone.json'))
    await person.out('create', 'edge-router', 'name=edge2')
    for (const [kind, name] of [
      ['identity', 'phone'],
      ['edge-router', 'edge2'],
    ] as const) {
      const lost = loseConnectionAfterPost()
      const done = await person.run('re-enroll', kind, name, '--yes')
      lost.mockRestore()
      expect(done).toMatchObject({ code: 1, stdout: '' })
      const [, shown = ''] =
        /^flotilla: the certificate is invalid now, but the token could not be read: connection lost\. To show the token: flotilla get (.*)\n$/.exec(
          done.stderr,
        ) ?? []
      const [shownKind = '', id = ''] = shown.split(' ')
      const record = await recordOf(shownKind, id)
      expect(`${String(record['jwt'] ?? record['enrollmentJwt'])}\n`, done.stderr).toMatch(JWT)
    }
    expect((await recordOf('identity', 'phone'))['authenticators']).not.toHaveProperty('cert')
  })

  test.each([
    ['transit-router', 'the API offers this for edge routers only'],
    ['service', 'name an edge router, an identity or an authenticator'],
  ])('refuses the kind %s', async (kind, hint) => {
    const done = await person.run('re-enroll', kind, 'x')
    expect(done.code).toBe(2)
    expect(done.stderr).toContain(`cannot be re-enrolled; ${hint}`)
  })
})
