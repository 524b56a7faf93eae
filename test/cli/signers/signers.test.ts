import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { jwkOf, KeyServer, TestProvider } from '../../support/identity-provider.ts'
import { Administrator } from '../client/support.ts'

// Goal: an administrator sets up an identity provider with one command, from values that people
// know, and sees for a token which check decides.

const server = await KeyServer.open([])
const address = `https://localhost:${server.port}`
const issuer = `${address}/realms/staff`
const provider = new TestProvider(issuer, 'overlay')
const keysAnswer = server.answer
server.keys = [jwkOf(provider.key)]
const document = { issuer, jwks_uri: server.url, authorization_endpoint: `${issuer}/auth` }
let served: object = document
server.answer = (request, response) => {
  if (request.url?.endsWith('/.well-known/openid-configuration') !== true) {
    keysAnswer(request, response)
    return
  }
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(served))
}

let person: Administrator
beforeAll(async () => {
  person = await Administrator.loggedIn(undefined, server.caPem)
  await person.out('create', 'identity', 'name=ada', 'type=User', 'externalId=ada@localhost')
})
afterAll(async () => {
  await person.close()
  await server.close()
})

const keycloak = ['--provider', 'keycloak', '--address', address, '--realm', 'staff']

describe('signer discover', () => {
  test('prints what the provider publishes', async () => {
    const text = await person.out('signer', 'discover', ...keycloak)
    expect(
      text
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/ {2,}/)),
    ).toEqual([
      ['field', 'value'],
      ['issuer', issuer],
      ['jwksEndpoint', server.url],
      ['authorizationEndpoint', `${issuer}/auth`],
      ['scopes'],
      ['usable keys', '1'],
    ])
    const json = await person.out('signer', 'discover', ...keycloak, '-o', 'json')
    expect(JSON.parse(json)).toMatchObject({ issuer, keyIds: ['first'] })
  })

  test('warns if the provider has no usable key', async () => {
    served = { ...document, jwks_uri: `${address}/.well-known/openid-configuration` }
    const { code, stderr } = await person.run('signer', 'discover', ...keycloak)
    served = document
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^flotilla: warning: .*keys?/)])
  })

  test('prints the reason why a provider cannot be used', async () => {
    served = { ...document, issuer: 'https://evil.test' }
    const { code, stderr } = await person.run('signer', 'discover', ...keycloak)
    served = document
    expect([code, stderr]).toEqual([1, expect.stringContaining('https://evil.test')])
  })
})

describe('signer create', () => {
  const words = ['signer', 'create', 'staff', ...keycloak, '--client-id', 'overlay']

  test('with --dry-run prints the signer, and creates nothing', async () => {
    const { stdout, stderr } = await person.run(...words, '--dry-run')
    expect(JSON.parse(stdout)).toMatchObject({ name: 'staff', issuer, jwksEndpoint: server.url })
    expect(stderr).toBe('flotilla: nothing was written\n')
    expect((await person.run('get', 'external-jwt-signer', 'staff')).code).toBe(4)
  })

  test('creates a signer that accepts tokens for the client and identifies users by a claim that never changes', async () => {
    expect(await person.out(...words)).toMatch(/^created external jwt signer staff, id /)
    const made = await person.out('get', 'external-jwt-signer', 'staff', '-o', 'json')
    expect(JSON.parse(made)).toMatchObject({
      issuer,
      audience: 'overlay',
      jwksEndpoint: server.url,
      claimsProperty: '/sub',
      useExternalId: true,
      clientId: 'overlay',
      externalAuthUrl: issuer,
      enabled: true,
    })
  })

  test.each([
    [['--provider', 'keycloak', '--realm', 'staff'], 'keycloak needs --address'],
    [[...keycloak], 'keycloak needs --client-id'],
    [[...keycloak, '--client-id', 'c', '--tenant', 't'], 'keycloak takes no --tenant'],
    [['--provider', 'entra', '--tenant', 'common', '--client-id', 'c'], 'a tenant is a UUID'],
    [['--provider', 'elsewhere'], 'keycloak'],
    [[], '--provider'],
  ])('refuses %j with a hint', async (given, hint) => {
    const { code, stderr } = await person.run('signer', 'create', 'other', ...given)
    expect([code, stderr]).toEqual([2, expect.stringContaining(hint)])
  })
})

describe('signer test', () => {
  async function tested(subject: string, claims = {}, ...words: readonly string[]) {
    const file = person.secret('token', await provider.token(subject, { claims }))
    return await person.run('signer', 'test', ...words, '--jwt-file', file)
  }

  test('prints the result of each check, and the identity that the token logs in', async () => {
    const { code, stdout, stderr } = await tested('ada@localhost')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^audience +passed +aud +overlay +overlay$/m)
    expect(stdout).toMatch(/^identity: ada$/m)
    expect(stdout).toMatch(/\nthe token logs in\n$/)
  })

  test('exits with 1 and the reason if the token does not log in', async () => {
    const other = await tested('ada@localhost', { aud: 'other' }, 'staff')
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('audience')])
    expect(other.stdout).toMatch(/^audience +failed +aud +other +overlay$/m)
    const unknown = await tested('nobody@localhost', {}, 'staff', '-o', 'json')
    expect(unknown.code).toBe(1)
    expect(JSON.parse(unknown.stdout)).toMatchObject({ logsIn: false, identity: null })
  })

  test('prints no part of a token except its claims', async () => {
    const token = await provider.token('nobody@localhost')
    const { stdout, stderr } = await person.run(
      'signer',
      'test',
      '--jwt-file',
      person.secret('token', token),
    )
    const [, payload = '', signature = ''] = token.split('.')
    expect(stdout + stderr).not.toContain(signature)
    expect(stdout + stderr).not.toContain(payload)
  })

  test('escapes control characters in the claims of a token', async () => {
    const { stdout, stderr } = await tested('\u001B]0;owned\u0007')
    expect(stdout + stderr).not.toContain('\u001B')
  })

  test('refuses an unknown signer', async () => {
    expect((await tested('ada@localhost', {}, 'nothing')).code).toBe(4)
  })
})
