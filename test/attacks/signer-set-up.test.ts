import { afterAll, expect, test } from 'vitest'
import { defaultApiLimits } from '../../src/api/limits.ts'
import { type CallerOf, management, type Reply } from '../api/support/caller.ts'
import { controllerForFile, type ForFile } from '../api/support/for-file.ts'
import { ecKey, jwkOf, KeyServer, TestProvider } from '../support/identity-provider.ts'

// The attack: to set up a signer, a controller requests an address and verifies a token. Somebody
// uses this to reach the controller's own host or a metadata service, to make the controller accept
// the keys of another provider, to keep it busy, or to read tokens in its logs.

const server = await KeyServer.open([jwkOf(ecKey('first'))], ['localhost', '127.0.0.1'])
afterAll(() => server.close())
const keysAnswer = server.answer

const written: unknown[] = []
const keep = (...all: readonly unknown[]): void => {
  written.push(...all)
}
const rules = { allowsHttp: false, refusedNetworks: [], caPem: server.caPem }
const closed = await controllerForFile({}, { ...rules, allowsReserved: false })
const hasty = await controllerForFile(
  { signerTestsOfOneMax: 3 },
  { ...rules, allowsReserved: false },
)
const open = await controllerForFile(
  {},
  { ...rules, allowsReserved: true },
  {
    allowsReservedSignerHosts: true,
    logger: { warn: keep, error: keep },
    audit: { refused: keep, answered: keep },
    publishFact: keep,
  },
)

const discover = (caller: CallerOf, issuer: string): Promise<Reply> =>
  caller.call('POST', `${management}/jwt-signer-setup/discover`, { issuer })
const testToken = (caller: CallerOf, token: string): Promise<Reply> =>
  caller.call('POST', `${management}/jwt-signer-setup/test`, { token })

/** Responds to a discovery with metadata that contain this JWKS address. */
function serveDocument(issuer: string, jwksUri: string): void {
  server.answer = (request, response) => {
    if (request.url?.endsWith('openid-configuration') !== true) {
      keysAnswer(request, response)
      return
    }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ issuer, jwks_uri: jwksUri }))
  }
}

async function callerWith(file: ForFile, ...permissions: string[]): Promise<CallerOf> {
  const name = `eve of ${permissions.join()}`
  const body = { name, type: 'User', isAdmin: false, permissions }
  const reply = await file.root.call('POST', `${management}/identities`, body)
  return file.sessionOf((reply.body.data as { id: string }).id)
}

test('the discovery of a provider sends no request to an address of this host or to a metadata service', async () => {
  const before = server.requests
  const hosts = ['localhost', '127.0.0.1', '[::ffff:127.0.0.1]', '0', '169.254.169.254']
  for (const host of [...hosts, 'metadata.google.internal']) {
    const { status, body } = await discover(closed.root, `https://${host}:${server.port}`)
    expect([status, body.error?.cause]).toMatchObject([
      400,
      { field: 'issuer', reason: expect.stringContaining('is not allowed') as string },
    ])
  }
  const metadata = await discover(open.root, 'https://169.254.169.254/latest')
  expect(metadata.text).toContain('is not allowed')
  expect((await discover(open.root, `http://localhost:${server.port}`)).text).toContain('https')
  expect((await discover(open.root, `https://a:b@localhost:${server.port}`)).status).toBe(400)
  expect(server.requests).toBe(before)
})

test('a discovery document cannot make the controller send a request to a metadata service, either through its JWKS URL or through a redirect', async () => {
  const issuer = `https://localhost:${server.port}`
  const before = server.requests
  serveDocument(issuer, 'https://169.254.169.254/latest/meta-data')
  const reply = await discover(open.root, issuer)
  expect(reply.body.data).toMatchObject({
    keyIds: null,
    keysFault: 'it resolves to an address that is not allowed',
  })
  server.answer = (_request, response) => {
    response.writeHead(302, { location: 'https://169.254.169.254/' }).end()
  }
  expect((await discover(open.root, issuer)).text).toContain('response status 302')
  expect(server.requests).toBe(before + 2)
  server.answer = keysAnswer
})

test('the discovery of a provider is refused if the document belongs to another issuer', async () => {
  const issuer = `https://localhost:${server.port}`
  serveDocument('https://accounts.example.com', server.url)
  const { status, body } = await discover(open.root, issuer)
  expect([status, body.data]).toEqual([400, undefined])
  expect(body.error?.cause).toMatchObject({ field: 'issuer' })
  server.answer = keysAnswer
})

test('only an administrator may start the discovery of a provider or test a token', async () => {
  const before = server.requests
  const issuer = `https://localhost:${server.port}`
  const callers = await Promise.all([
    callerWith(open, 'external-jwt-signer'),
    callerWith(open, 'admin_readonly'),
    callerWith(open, 'external-jwt-signer.create', 'identity.read'),
  ])
  for (const caller of callers) {
    expect([
      (await discover(caller, issuer)).status,
      (await testToken(caller, 'a')).status,
    ]).toEqual([401, 401])
  }
  expect(server.requests).toBe(before)
})

test('an administrator can start a limited number of discoveries and token tests, and can still use the rest of the API', async () => {
  const statuses: number[] = []
  for (let at = 0; at < 4; at += 1) {
    const asked =
      at % 2 === 0 ? testToken(hasty.root, 'a') : discover(hasty.root, 'https://localhost')
    statuses.push((await asked).status)
  }
  expect(statuses).toEqual([200, 400, 200, 429])
  expect((await hasty.root.get(`${management}/external-jwt-signers`)).status).toBe(200)
  expect(defaultApiLimits.signerTestsOfOneMax).toBeLessThanOrEqual(60)
})

test('a tested token appears in no log, audit line or event, and does not become valid for a log-in', async () => {
  const { root, controller } = open
  const provider = new TestProvider('https://idp.test', 'us', () => controller.clock.nowMs())
  server.keys = [jwkOf(provider.key)]
  const body = { name: 'idp', issuer: provider.issuer, audience: 'us', jwksEndpoint: server.url }
  const url = `${management}/external-jwt-signers`
  const made = await root.call('POST', url, { ...body, enabled: false })
  const { id } = made.body.data as { id: string }
  const index = controller.machine.appliedIndex
  const tokens = [
    await provider.token('alice-id'),
    await provider.token('alice-id', { claims: { aud: 'other' } }),
    await provider.token('alice-id', { key: ecKey('first') }),
    'not-a-token-but-a-secret',
  ]
  for (const token of tokens) expect((await testToken(root, token)).status).toBe(200)
  expect(controller.machine.appliedIndex).toBe(index)
  for (const token of tokens) {
    const secret = token.split('.').at(-1) ?? ''
    expect(JSON.stringify(written)).not.toContain(secret)
  }
  // Testing a token for a disabled signer must not add it to the verified tokens.
  const headers = { authorization: `Bearer ${tokens[0]}` }
  const logIn = await root.call('POST', `${management}/authenticate?method=ext-jwt`, {}, headers)
  expect(logIn.status).toBe(401)
  await root.call('DELETE', `${url}/${id}`)
})
