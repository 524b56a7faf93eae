import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

import { OidcProviderClient } from '../../../src/cli/client/oidc-provider-client.ts'
import { logInByCodeFlow } from '../../../src/cli/log-in/code-flow.ts'
import { openRestSession } from '../../../src/cli/log-in/rest-session.ts'
import { admin } from '../../api/support/controller.ts'
import { Administrator } from '../client/support.ts'

// Goal: if a log-in at the terminal lacks a second factor, the message names the factor and what
// the person can do. Method: a controller of a later version requires factors that this program
// does not know.

let person: Administrator
beforeAll(async () => {
  person = await Administrator.open()
})
afterAll(() => person.close())

const method = { method: 'password', username: admin.username } as const
const credential = { password: admin.password }
const code = (): Promise<string> => Promise.resolve('000000')

/**
 * Logs in with the code flow at a controller that responds with these auth queries after the
 * password.
 */
async function byCodeFlow(...answers: readonly unknown[]): Promise<unknown> {
  const provider = await OidcProviderClient.discover(person.origin, { caPem: person.caPem })
  const real = provider.step.bind(provider)
  const left = [...answers]
  vi.spyOn(provider, 'step').mockImplementation(async (url, body, headers) => {
    const answer = await real(url, body, headers)
    if (body === undefined) return answer
    return { ...answer, status: 200, body: { authQueries: left.shift() } }
  })
  return await logInByCodeFlow(provider, { method, credential, code }).catch((error) => error)
}

/** Logs in with the REST API at a controller that responds with these auth queries. */
async function byRest(authQueries: readonly unknown[]): Promise<unknown> {
  const { certificatePem: cert, privateKeyPem: key } = person.cluster.own
  const data = { token: 't', identity: { name: 'later' }, authQueries }
  const server = createServer({ cert, key }, (_asked, answer) => {
    answer.setHeader('content-type', 'application/json')
    answer.end(JSON.stringify({ data, meta: {} }))
  })
  server.listen(0, '127.0.0.1')
  await vi.waitUntil(() => server.listening)
  const controllers = [`https://127.0.0.1:${(server.address() as AddressInfo).port}`]
  const opening = { controllers, caPem: person.caPem, method, credential, code }
  const outcome = await openRestSession(opening).catch((error: unknown) => error)
  server.closeAllConnections()
  server.close()
  return outcome
}

const refusal = (message: string, exitCode = 3) => expect.objectContaining({ exitCode, message })
const unknown = (types: string): string =>
  `this identity also needs a second factor that this version of flotilla does not know: ${types}`
const onPage = 'log in with --browser or --device, or update flotilla'
const token =
  'this identity also needs a token of an identity provider; pass it with --jwt-file FILE'
const enrolled = { typeId: 'TOTP', isTotpEnrolled: true }

describe('a log-in that requires an unknown second factor', () => {
  test('fails in the code flow with the name of the factor and the next step, whether the factor is required alone or together with known factors', async () => {
    const passkey = { typeId: 'PASSKEY' }
    const alone = refusal(`${unknown('PASSKEY')}; ${onPage}`)
    expect(await byCodeFlow([passkey])).toEqual(alone)
    expect(await byCodeFlow([enrolled, passkey])).toEqual(alone)
    expect(await byCodeFlow([{ typeId: 'EXT-JWT' }, passkey])).toEqual(alone)
    expect(await byCodeFlow([passkey, passkey, { typeId: 'SMS' }])).toEqual(
      refusal(`${unknown('PASSKEY, SMS')}; ${onPage}`),
    )
  })

  test('fails in the code flow with the name of the factor and the next step, even after a one-time code was accepted', async () => {
    expect(await byCodeFlow([enrolled], [{ typeId: 'PASSKEY' }])).toEqual(
      refusal(`${unknown('PASSKEY')}; ${onPage}`),
    )
  })

  test('fails, and reports the unexpected status 200, if the response has this status but names no missing factor', async () => {
    const odd = refusal(`${person.origin}: unexpected response status 200`, 1)
    expect(await byCodeFlow([])).toEqual(odd)
    expect(await byCodeFlow([enrolled], [])).toEqual(odd)
  })

  test('fails at the REST API, which has no log-in page, with advice to update flotilla', async () => {
    expect(await byRest([{ typeId: 'PASSKEY' }])).toEqual(
      refusal(`${unknown('PASSKEY')}; update flotilla`),
    )
  })

  test('fails with one line of printable text, whatever factor name the controller sends', async () => {
    expect(await byCodeFlow([{ typeId: `a\u001b[2J\n${'b'.repeat(90)}` }, null, {}])).toEqual(
      refusal(`${unknown(`a?[2J ${'b'.repeat(34)}, without a name`)}; ${onPage}`),
    )
  })
})

test('a log-in asks for a token of an identity provider if this token is the missing factor', async () => {
  expect(await byCodeFlow([{ typeId: 'EXT-JWT' }])).toEqual(refusal(token))
  expect(await byCodeFlow([enrolled, { typeId: 'EXT-JWT' }])).toEqual(refusal(token))
  expect(await byCodeFlow([enrolled], [{ typeId: 'EXT-JWT' }])).toEqual(refusal(token))
  expect(await byRest([{ typeId: 'EXT-JWT' }])).toEqual(refusal(token))
  expect(await byRest([{ typeId: 'MFA' }, { typeId: 'EXT-JWT' }])).toEqual(refusal(token))
})
