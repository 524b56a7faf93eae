import { createHmac, createPublicKey, X509Certificate } from 'node:crypto'

import { beforeAll, describe, expect, test } from 'vitest'

import { parseCertificate } from '../../../src/pki/certificate.ts'
import { CallerOf, client, management } from '../../api/support/caller.ts'
import { claimsOf, listed, made, newService, shown as detailOf } from '../../api/support/network.ts'
import { OidcClient, type OidcReply, type Tokens } from '../../api/support/oidc.ts'
import { memberLeaf, signerOf } from '../../support/member-leaf.ts'
import { ownIdentity, password, twoControllers } from './support.ts'

// The attack: somebody presents a token for another purpose, of another key or of another cluster.
// The tests present each kind of token in every place.

const two = await twoControllers()
const { controller, root, first, second, members, newClient, newPerson } = two

let tokens: Tokens
let claims: Record<string, unknown>
let identityId: string
let shown: Record<string, string>

beforeAll(async () => {
  const person = await newPerson()
  identityId = person.id
  tokens = await newClient().logIn(person.username, password)
  claims = claimsOf(tokens.access_token)
  const serviceId = await newService(root, 'ledger')
  await made(root, `${management}/edge-routers`, { name: 'gate' })
  const every = { semantic: 'AnyOf', serviceRoles: ['#all'] }
  const dial = { ...every, name: 'dial', type: 'Dial', identityRoles: ['#all'] }
  await made(root, `${management}/service-policies`, dial)
  const edgeRouterRoles = ['#all']
  const routers = { ...every, name: 's', edgeRouterRoles }
  await made(root, `${management}/service-edge-router-policies`, routers)
  const own = { name: 'e', semantic: 'AnyOf', identityRoles: ['#all'], edgeRouterRoles }
  await made(root, `${management}/edge-router-policies`, own)
  const caller = new CallerOf(controller)
  await caller.logIn({ username: person.username, password }, client)
  const opened = await caller.call('POST', `${client}/sessions`, { serviceId, type: 'Dial' })
  const network = await root.get(`${management}/network-jwts`)
  const [own1] = members
  if (own1 === undefined) throw new Error('two controllers have keys')
  const stranger = await memberLeaf('ctrl1')
  const now = (): number => controller.clock.nowMs()
  const member = signerOf(own1, members, now)
  const header = { alg: 'HS256', typ: 'JWT' }
  const packed = (value: unknown): string =>
    Buffer.from(JSON.stringify(value)).toString('base64url')
  const publicPem = createPublicKey(
    new X509Certificate(own1.certificatePem).publicKey.export({ type: 'spki', format: 'pem' }),
  )
    .export({ type: 'spki', format: 'pem' })
    .toString()
  const text = `${packed(header)}.${packed(claims)}`
  const [head = '', body = '', signature = ''] = tokens.access_token.split('.')
  shown = {
    'a service session token': (opened.body.data as { token: string }).token,
    'the token of the network': (network.body.data as { token: string }[])[0]?.token ?? '',
    'a token of another cluster': await signerOf(stranger, [stranger], now).sign(claims as never),
    'a token of no key': `${packed({ alg: 'none', typ: 'JWT' })}.${body}.`,
    'a token signed by the public key': `${text}.${createHmac('sha256', publicPem).update(text).digest('base64url')}`,
    'a token whose text was changed': `${head}.${packed({ ...claims, sub: 'admin-id' })}.${signature}`,
    'a token without a purpose': await member.sign({ ...claims, z_t: null } as never),
    'a token of two audiences': await member.sign({ ...claims, aud: ['native', 'x'] } as never),
    'a token of another audience': await member.sign({ ...claims, aud: ['x'] } as never),
    'a token of another issuer': await member.sign({
      ...claims,
      iss: 'https://evil.example',
    } as never),
    'a token whose time is over': await member.sign({ ...claims, exp: 1 } as never),
    'a token of later': await member.sign({
      ...claims,
      nbf: Math.floor(now() / 1000) + 900,
    } as never),
    'a token of another identity': await member.sign({ ...claims, sub: 'admin-id' } as never),
    'a token of another client': await member.sign({ ...claims, aud: ['openziti'] } as never),
    'a token of no session': await member.sign({ ...claims, z_asid: 'nothing' } as never),
    'the token of a session': controller.tokenOf(String(claims['z_asid'])),
    'the id of a session': String(claims['z_asid']),
    'a refresh token': tokens.refresh_token,
    'an id token': tokens.id_token,
    'an access token': tokens.access_token,
  }
})

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const typeOf = (name: string): string => `urn:ietf:params:oauth:token-type:${name}_token`

function exchangeOf(oidc: OidcClient, token: string, name: string): Promise<OidcReply> {
  return oidc.send('POST', '/oidc/oauth/token', {
    grant_type: EXCHANGE,
    client_id: 'native',
    subject_token: token,
    subject_token_type: typeOf(name),
    requested_token_type: typeOf('access'),
  })
}

/** Each place for a token, with the kind of token that it accepts. */
const doors: Readonly<
  Record<string, { opener: string; ask: (oidc: OidcClient, token: string) => Promise<boolean> }>
> = {
  'the client API': {
    opener: 'an access token',
    ask: async (oidc, token) => (await oidc.statusAt(ownIdentity, token)) === 200,
  },
  'the userinfo endpoint': {
    opener: 'an access token',
    ask: async (oidc, token) => (await oidc.statusAt('/oidc/userinfo', token)) === 200,
  },
  'the refresh of tokens': {
    opener: 'a refresh token',
    ask: async (oidc, token) => (await oidc.refresh(token)).status === 200,
  },
  'the exchange of refresh tokens': {
    opener: 'a refresh token',
    ask: async (oidc, token) => (await exchangeOf(oidc, token, 'refresh')).status === 200,
  },
  'the exchange of access tokens': {
    opener: 'an access token',
    ask: async (oidc, token) => (await exchangeOf(oidc, token, 'access')).status === 200,
  },
  'the redemption of a code': {
    opener: 'none',
    ask: async (oidc, token) => (await oidc.redeem(token)).status === 200,
  },
  'the log-in page': {
    opener: 'none',
    ask: async (oidc, token) =>
      (await oidc.send('GET', `/oidc/login/password?id=${encodeURIComponent(token)}`)).status ===
      200,
  },
  'a log-in by an external JWT': {
    opener: 'none',
    ask: async (oidc, token) => {
      const headers = { authorization: `Bearer ${token}` }
      const id = await oidc.begin()
      return (await oidc.send('POST', '/oidc/login/ext-jwt', { id }, headers)).status !== 401
    },
  },
}

test.each(Object.entries(doors))(
  'of all kinds of tokens, %s accepts at most the intended kind',
  async (_name, door) => {
    for (const app of [first, second]) {
      const oidc = new OidcClient({ app })
      const openers: string[] = []
      for (const [name, token] of Object.entries(shown)) {
        if (await door.ask(oidc, token)) openers.push(name)
      }
      expect(openers).toEqual(door.opener === 'none' ? [] : [door.opener])
    }
  },
)

test('an access token is refused as a session token, and refused in a request that also has an invalid session token', async () => {
  const headers = { 'zt-session': tokens.access_token }
  const oidc = newClient()
  expect((await oidc.send('GET', ownIdentity, undefined, headers)).status).toBe(401)
  const both = { 'zt-session': 'made up', authorization: `Bearer ${tokens.access_token}` }
  expect((await oidc.send('GET', ownIdentity, undefined, both)).status).toBe(401)
})

test('a session can be ended only with one of the session’s tokens, not with its ID', async () => {
  const oidc = newClient()
  const { json: keys } = await oidc.send('GET', '/oidc/keys')
  const [{ kid = '' } = {}] = keys['keys'] as { kid?: string }[]
  const before = controller.cluster.proposals.length
  const ends = new Set(['an access token', 'a refresh token'])
  for (const [name, token] of [...Object.entries(shown), ['id', identityId], ['kid', kid]]) {
    if (ends.has(String(name)) || name === 'an id token') continue
    for (const path of ['/oidc/revoke', '/oidc/oauth/revoke']) {
      const told = await oidc.send('POST', path, { token: String(token) })
      expect([name, told.status]).toEqual([name, 200])
    }
    const hint = new URLSearchParams({ id_token_hint: String(token) })
    await oidc.send('GET', `/oidc/end_session?${hint.toString()}`)
  }
  expect(controller.cluster.proposals).toHaveLength(before)
  expect(await oidc.statusAt(ownIdentity, tokens.access_token)).toBe(200)
})

describe('the tokens that a removed controller signed', () => {
  test('become invalid immediately, including tokens that were used before', async () => {
    const { username } = await newPerson()
    const there = new OidcClient({ app: second })
    const { access_token: access, refresh_token: refresh } = await there.logIn(username, password)
    const here = newClient()
    expect(await here.statusAt(ownIdentity, access)).toBe(200)
    const [removed] = members.splice(1, 1)
    try {
      expect(await here.statusAt(ownIdentity, access)).toBe(401)
      expect(await here.statusAt('/oidc/userinfo', access)).toBe(401)
      expect((await here.refresh(refresh)).status).toBe(400)
      const { json } = await here.send('GET', '/oidc/keys')
      expect(json['keys']).toHaveLength(1)
    } finally {
      if (removed !== undefined) members.push(removed)
    }
    expect(await here.statusAt(ownIdentity, access)).toBe(200)
  })
})

test('a controller of the network cannot be configured as an external JWT signer', async () => {
  const [{ certificatePem = '' } = {}] = members
  const { sha1 } = parseCertificate(certificatePem)
  const other = await memberLeaf('elsewhere')
  const common = {
    name: 'itself',
    audience: 'native',
    enabled: true,
    issuer: 'https://idp.example',
  }
  const keys = { jwksEndpoint: 'https://idp.example/keys' }
  const url = `${management}/external-jwt-signers`
  const signer = `${url}/${await made(root, url, { ...common, ...keys })}`
  const before = await detailOf(root, signer)
  for (const [field, fields] of [
    ['issuer', { ...keys, issuer: 'https://localhost:1280/oidc' }],
    ['issuer', { ...keys, issuer: 'https://LOCALHOST:1281' }],
    ['jwksEndpoint', { jwksEndpoint: 'https://localhost:1280/oidc/keys' }],
    ['certPem', { certPem: certificatePem, kid: 'any' }],
    ['kid', { certPem: other.certificatePem, kid: sha1 }],
  ] as const) {
    const body = { ...common, ...fields }
    const refused = await root.call('POST', `${management}/external-jwt-signers`, body)
    expect([refused.status, refused.body.error?.cause?.['field']]).toEqual([400, field])
    const patched = await root.call('PATCH', signer, fields)
    expect([patched.status, patched.body.error?.cause?.['field']]).toEqual([400, field])
    const replaced = await root.call('PUT', signer, body)
    expect([replaced.status, replaced.body.error?.cause?.['field']]).toEqual([400, field])
  }
  expect(await detailOf(root, signer)).toEqual(before)
  expect(await listed(root, `${management}/external-jwt-signers`)).toHaveLength(1)
})

test('the tokens of an identity that is no longer an administrator give no administrator rights', async () => {
  const id = await made(root, `${management}/identities`, {
    name: 'deputy',
    type: 'User',
    isAdmin: true,
  })
  const credential = { method: 'updb', identityId: id, username: 'deputy', password }
  await made(root, `${management}/authenticators`, credential)
  const oidc = newClient()
  const { access_token: token } = await oidc.logIn('deputy', password)
  expect(await oidc.statusAt(`${management}/identities`, token)).toBe(200)
  const path = `${management}/identities/${id}`
  expect((await root.call('PATCH', path, { isAdmin: false })).status).toBe(200)
  // The claim is only a hint: no permission depends on it.
  for (const app of [first, second]) {
    const deputy = new OidcClient({ app })
    expect(await deputy.statusAt(`${management}/identities`, token)).toBe(401)
    expect(await deputy.statusAt(ownIdentity, token)).toBe(200)
  }
})
