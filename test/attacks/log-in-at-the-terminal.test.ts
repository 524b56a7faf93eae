import { chmodSync, readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

import { readContexts } from '../../src/cli/client/context-file.ts'
import { OidcProviderClient } from '../../src/cli/client/oidc-provider-client.ts'
import { SessionTokens } from '../../src/cli/client/session-tokens.ts'
import { logInByCodeFlow } from '../../src/cli/log-in/code-flow.ts'
import { RedirectListener } from '../../src/cli/log-in/redirect-listener.ts'
import { writeSecretFile } from '../../src/pki/secret-file.ts'
import { admin } from '../api/support/controller.ts'
import { Administrator } from '../cli/client/support.ts'

// The attack: a person logs in at a terminal. Another program on the host, a page in the person's
// browser or a lying controller tries to get the session, to replace it with its own, or to end the
// log-in.

let person: Administrator
beforeAll(async () => {
  person = await Administrator.open()
})
afterAll(() => person.close())

const path = (): string => join(person.folder, 'flotilla', 'contexts.json')

function statusOf(url: string, host?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = host === undefined ? {} : { host }
    const asked = request(url, { headers, agent: false }, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
    asked.on('error', reject)
    asked.end()
  })
}

/** Whether the received request has ended the wait for the log-in. */
async function isEnded(waiting: Promise<unknown>): Promise<boolean> {
  return await Promise.race([
    waiting.then(() => true),
    new Promise<boolean>((resolve) => setImmediate(() => resolve(false))),
  ])
}

test('an authorization code that arrives with a wrong state parameter is not accepted', async () => {
  const listener = await RedirectListener.open()
  const waiting = listener.wait('the state of the log-in')
  expect(await statusOf(`${listener.uri}?state=another&code=stolen`)).toBe(400)
  expect(await isEnded(waiting)).toBe(false)
  await listener.close()
})

test('a web page that reaches the local redirect listener under the page’s own host name does not end the log-in', async () => {
  const listener = await RedirectListener.open()
  const waiting = listener.wait('s')
  expect(await statusOf(`${listener.uri}?state=s&code=c`, 'rebound.example')).toBe(400)
  expect(await isEnded(waiting)).toBe(false)
  await listener.close()
})

test('a password is sent only to the trusted controller', async () => {
  const { certificatePem: cert, privateKeyPem: key } = person.cluster.own
  const bodies: string[] = []
  const other = createServer({ cert, key }, (asked, answer) => {
    asked.on('data', (chunk: Buffer) => bodies.push(chunk.toString()))
    asked.on('end', () => answer.end('{}'))
  })
  other.listen(0, '127.0.0.1')
  await vi.waitUntil(() => other.listening)
  const elsewhere = `https://127.0.0.1:${(other.address() as AddressInfo).port}`
  const provider = await OidcProviderClient.discover(person.origin, { caPem: person.caPem })
  const step = vi.spyOn(provider, 'step').mockImplementationOnce(async (url, body, headers) => {
    step.mockRestore()
    const answer = await provider.step(url, body, headers)
    return { ...answer, headers: { ...answer.headers, location: `${elsewhere}/oidc/login` } }
  })
  const flow = {
    method: { method: 'password', username: admin.username },
    credential: { password: admin.password },
    code: () => Promise.reject(new Error('no second factor')),
  } as const
  await expect(logInByCodeFlow(provider, flow)).rejects.toThrow('leads to another host')
  expect(bodies).toEqual([])
  other.close()
})

test('if the session is about to expire, only one of several commands running at the same time uses the refresh token', async () => {
  await person.logIn('--context', 'net')
  const file = JSON.parse(readFileSync(path(), 'utf8')) as {
    contexts: Record<string, { renewal: { expiresAtMs: number } }>
  }
  for (const { renewal } of Object.values(file.contexts)) renewal.expiresAtMs = Date.now()
  writeSecretFile(path(), JSON.stringify(file))
  const found = readContexts(path()).contexts['net']
  if (found === undefined) throw new Error('nobody is logged in')
  const refresh = vi.spyOn(OidcProviderClient.prototype, 'refresh')
  const commands = Array.from({ length: 4 }, () => new SessionTokens('net', found, '', path()))
  const tokens = await Promise.all(commands.map((one) => one.token()))
  expect(refresh).toHaveBeenCalledTimes(1)
  expect(new Set(tokens).size).toBe(1)
  refresh.mockRestore()
})

test('a command refuses a session file that other users can read, and prints the command that protects the file', async () => {
  await person.logIn('--context', 'net')
  chmodSync(path(), 0o604)
  const done = await person.run('list', 'identities')
  expect([done.code, done.stderr]).toEqual([1, expect.stringContaining('chmod 600')])
  chmodSync(path(), 0o600)
})
