import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { OidcProviderClient } from '../../src/cli/client/oidc-provider-client.ts'
import { writeSecretFile } from '../../src/pki/secret-file.ts'
import { runHere } from '../cli/run-here.ts'
import { HostileServer } from './support/hostile-server.ts'

// The attack: for the steps of a log-in, a controller sends addresses that make the user's browser
// open a file or start another program, or that send the code, the refresh token or the password to
// another host.

let hostile: HostileServer
let other: HostileServer
let home: string
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'flotilla-home-'))
  hostile = await HostileServer.open()
  other = await HostileServer.open(hostile.ca)
})
afterAll(async () => {
  await Promise.all([hostile.close(), other.close()])
  rmSync(home, { recursive: true })
})

let endpoints: Record<string, unknown>
let device: Record<string, unknown>
beforeEach(() => {
  endpoints = {}
  device = {}
  hostile.answer = ({ path }) => {
    const issuer = `${hostile.origin}/oidc`
    if (path.endsWith('/version')) {
      return { body: { data: { capabilities: ['OIDC_AUTH'] }, meta: {} } }
    }
    if (path.endsWith('/openid-configuration')) {
      const body = {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        device_authorization_endpoint: `${issuer}/device`,
        ...endpoints,
      }
      return { body }
    }
    const verification = { verification_uri: `${issuer}/device`, expires_in: 600 }
    return { body: { device_code: 'd', user_code: 'ABCD', ...verification, ...device } }
  }
})

const discovered = (): Promise<OidcProviderClient> =>
  OidcProviderClient.discover(hostile.origin, { caPem: hostile.ca.certificatePem })
const addresses = (): string[] => [
  'file:///home/somebody/run.desktop',
  'javascript:alert(1)',
  'http://127.0.0.1:1/oidc/authorize',
  `${other.origin}/oidc/authorize`,
  `https://${new URL(hostile.origin).host}@evil.example/authorize`,
  'not an address',
]

describe('an address of another host in a log-in response of the controller', () => {
  test.each([
    'authorization_endpoint',
    'token_endpoint',
    'device_authorization_endpoint',
    'revocation_endpoint',
  ])('makes the log-in fail if it is the %s', async (name) => {
    for (const address of addresses()) {
      endpoints = { [name]: address }
      await expect(discovered(), address).rejects.toThrow(
        `${hostile.origin}: its ${name} is ${JSON.stringify(address)}, an address of another host; nothing was opened or sent there`,
      )
    }
  })

  test.each(['verification_uri', 'verification_uri_complete'])(
    'makes the log-in of a device fail if it is the %s',
    async (name) => {
      const provider = await discovered()
      for (const address of addresses()) {
        device = { [name]: address }
        await expect(provider.beginDevice(), address).rejects.toThrow(`its ${name} is`)
      }
    },
  )
})

test('the log-in neither opens an address of another host in a browser nor sends the password to such an address', async () => {
  const seen = join(home, 'seen')
  const browser = join(home, 'browser')
  writeFileSync(browser, `#!/bin/sh\necho "$1" > '${seen}'\n`, { mode: 0o755 })
  const ca = join(home, 'ca.pem')
  writeFileSync(ca, hostile.ca.certificatePem)
  endpoints = { authorization_endpoint: 'file:///home/somebody/run.desktop' }
  const words = ['login', hostile.origin, '--ca', ca]
  const env = { XDG_CONFIG_HOME: home, BROWSER: browser }
  const done = await runHere([...words, '--browser'], env)
  expect([done.code, done.stderr.split('\n')]).toEqual([
    1,
    [expect.stringContaining('its authorization_endpoint is "file:///home'), ''],
  ])
  expect(existsSync(seen)).toBe(false)
  endpoints = { authorization_endpoint: `${other.origin}/oidc/authorize` }
  const password = join(home, 'password')
  writeSecretFile(password, 'the password\n')
  await runHere([...words, '--user', 'admin', '--password-file', password], env)
  expect(other.requests).toEqual([])
})

test('a controller cannot make the log-in client poll too often or for too long', async () => {
  device = { expires_in: 1e12, interval: 1e-9 }
  const begun = await (await discovered()).beginDevice()
  expect([begun.expiresInMs, begun.intervalMs]).toEqual([3_600_000, 1000])
})
