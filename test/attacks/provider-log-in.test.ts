import { afterAll, afterEach, expect, test } from 'vitest'
import { CallerOf, client, management, type Reply } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { jwkOf, KeyServer, TestProvider } from '../support/identity-provider.ts'

// The attack: for the console's log-in at an identity provider, a controller sends requests on
// behalf of callers without a session. They use this to reach other addresses, to keep a provider
// busy, to run a script in the console, or to read codes and tokens in the logs.

const server = await KeyServer.open([])
afterAll(() => server.close())
const written: unknown[] = []
const keep = (...all: readonly unknown[]): void => {
  written.push(...all)
}
const rules = { allowsReserved: true, allowsHttp: false, refusedNetworks: [], caPem: server.caPem }
const given = {
  allowsReservedSignerHosts: true,
  logger: { warn: keep, error: keep },
  audit: { refused: keep, answered: keep },
  publishFact: keep,
}
const { controller, root } = await controllerForFile({ providerLogInsOfOneMax: 100 }, rules, given)
const hasty = await controllerForFile({ providerLogInsOfOneMax: 3 }, rules, given)

const issuer = `https://localhost:${server.port}`
const provider = new TestProvider(issuer, 'overlay', () => controller.clock.nowMs())
server.keys = [jwkOf(provider.key)]
const keysAnswer = server.answer
let document: Record<string, unknown> = {}
let forms: string[] = []
let answerCode: () => Promise<unknown> = () => Promise.resolve({})

afterEach(() => {
  document = {}
  forms = []
})
server.answer = (request, response) => {
  if (request.url === '/token') {
    request.on('data', (chunk: Buffer) => forms.push(chunk.toString('utf8')))
    request.on('end', () => {
      void answerCode().then((body) => {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify(body))
      })
    })
    return
  }
  if (request.url !== '/.well-known/openid-configuration') {
    keysAnswer(request, response)
    return
  }
  response.setHeader('content-type', 'application/json')
  const found = {
    issuer,
    jwks_uri: server.url,
    authorization_endpoint: `${issuer}/auth`,
    token_endpoint: `${issuer}/token`,
  }
  response.end(JSON.stringify({ ...found, ...document }))
}

async function newSigner(fields: object = {}, of: CallerOf = root): Promise<string> {
  const listed = await of.get(`${management}/external-jwt-signers`)
  for (const { id } of listed.body.data as unknown as readonly { readonly id: string }[]) {
    await of.call('DELETE', `${management}/external-jwt-signers/${id}`)
  }
  const reply = await of.call('POST', `${management}/external-jwt-signers`, {
    name: 'idp',
    issuer,
    audience: 'overlay',
    enabled: true,
    jwksEndpoint: server.url,
    externalAuthUrl: issuer,
    clientId: 'overlay',
    targetToken: 'ID',
    ...fields,
  })
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}

const begin = (signerId: string, at = controller): Promise<Reply> =>
  new CallerOf(at).call('POST', `${client}/provider-log-in/endpoint`, { signerId })
const redeem = (signerId: string, rest: object = {}): Promise<Reply> =>
  new CallerOf(controller).call('POST', `${client}/provider-log-in/token`, {
    signerId,
    code: 'a-secret-code',
    codeVerifier: 'a-secret-verifier',
    redirectUri: 'https://ctrl1.test/console/',
    ...rest,
  })

test('the controller redeems an authorization code at the provider of the signer, and the resulting token logs in', async () => {
  const signerId = await newSigner()
  const token = await provider.token('alice-id')
  answerCode = () => Promise.resolve({ id_token: token, access_token: 'other' })
  expect((await begin(signerId)).body.data).toEqual({ authorizationEndpoint: `${issuer}/auth` })
  expect((await redeem(signerId)).body.data).toEqual({ token })
  expect(Object.fromEntries(new URLSearchParams(forms.join()))).toEqual({
    grant_type: 'authorization_code',
    client_id: 'overlay',
    code: 'a-secret-code',
    code_verifier: 'a-secret-verifier',
    redirect_uri: 'https://ctrl1.test/console/',
  })
  const url = `${management}/authenticate?method=ext-jwt`
  const headers = { authorization: `Bearer ${token}` }
  expect((await new CallerOf(controller).call('POST', url, {}, headers)).status).toBe(200)
})

test('the controller sends no request to the provider of a signer that is disabled or has no log-in configured', async () => {
  const before = server.requests
  for (const fields of [{ enabled: false }, { clientId: '' }, { externalAuthUrl: '' }]) {
    const signerId = await newSigner(fields)
    expect([(await begin(signerId)).status, (await redeem(signerId)).status]).toEqual([404, 404])
  }
  expect((await begin('none')).status).toBe(404)
  expect(server.requests).toBe(before)
})

test('a provider’s log-in page is refused if its address runs a script or uses no TLS', async () => {
  for (const address of ['javascript:alert(1)', 'data:text/html,a', 'http://idp.test/auth', 7]) {
    document = { authorization_endpoint: address }
    const reply = await begin(await newSigner())
    expect([reply.status, reply.body.data]).toEqual([400, undefined])
  }
})

test('a provider’s metadata can neither make the controller request a metadata service nor claim another issuer', async () => {
  document = { token_endpoint: 'https://169.254.169.254/latest/token' }
  expect((await redeem(await newSigner())).status).toBe(401)
  document = { issuer: 'https://accounts.example.com' }
  expect((await begin(await newSigner())).status).toBe(400)
  document = {}
  answerCode = () => Promise.resolve([])
  expect((await redeem(await newSigner())).status).toBe(401)
})

// The attack: a malicious provider redirects the browser of its user to the log-in page of another
// provider, or of the controller, to get the code that this log-in issues (RFC 9207).
test('the controller sends a provider no code that another issuer has issued', async () => {
  const token = await provider.token('alice-id')
  answerCode = () => Promise.resolve({ id_token: token })
  const signerId = await newSigner()
  for (const other of ['https://ctrl1.test/oidc', `${issuer}/`, '']) {
    expect((await redeem(signerId, { issuer: other })).status, other).toBe(401)
  }
  document = { authorization_response_iss_parameter_supported: true }
  const strictId = await newSigner()
  expect((await redeem(strictId)).status).toBe(401)
  expect(forms).toEqual([])
  for (const one of [() => redeem(strictId, { issuer }), async () => redeem(await newSigner())]) {
    expect((await one()).status).toBe(200)
    document = {}
  }
})

test('a source address can start only a limited number of log-ins at a provider, which cause one request to the provider', async () => {
  const signerId = await newSigner({}, hasty.root)
  const before = server.requests
  const statuses: number[] = []
  for (let at = 0; at < 5; at += 1) {
    statuses.push((await begin(signerId, hasty.controller)).status)
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429])
  // The controller has stored the metadata of the provider.
  expect(server.requests).toBe(before + 1)
})

test('the codes, verifiers and tokens of a log-in at a provider are in no log, audit line or event', async () => {
  const token = await provider.token('alice-id')
  const signerId = await newSigner()
  answerCode = () => Promise.resolve({ id_token: token })
  await redeem(signerId)
  answerCode = () => Promise.resolve({ error: 'invalid_grant' })
  expect((await redeem(signerId)).text).not.toContain('secret')
  const lines = JSON.stringify(written)
  expect(lines).toContain('"operation":"redeemProviderCode","outcome":"INVALID_AUTH"')
  for (const secret of ['a-secret-code', 'a-secret-verifier', token.split('.').at(-1) ?? '']) {
    expect(lines).not.toContain(secret)
  }
})
