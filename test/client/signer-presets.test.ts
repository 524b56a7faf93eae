import { expect, test } from 'vitest'

import { buildSignerBody, signerPreset, signerPresets } from '../../src/client/signer-presets.ts'

// Goal: for each provider, the few values that a person knows determine the issuer that the
// provider writes into its tokens, and a signer that accepts only these tokens.

const tenant = '00000000-0000-4000-8000-00000000000A'

function presetOf(name: string) {
  const preset = signerPreset(name)
  if (preset === undefined) throw new Error(`no preset is named ${name}`)
  return preset
}

test.each([
  ['google', {}, 'https://accounts.google.com'],
  ['entra', { tenant }, `https://login.microsoftonline.com/${tenant.toLowerCase()}/v2.0`],
  ['okta', { domain: 'example.okta.com' }, 'https://example.okta.com'],
  [
    'okta',
    { domain: 'https://example.okta.com/', server: 'default' },
    'https://example.okta.com/oauth2/default',
  ],
  [
    'keycloak',
    { address: 'idp.test/auth/', realm: 'my staff' },
    'https://idp.test/auth/realms/my%20staff',
  ],
  ['other', { issuer: ' https://idp.test/ ' }, 'https://idp.test/'],
])('the preset of the provider %s derives the issuer from %j', (name, values, issuer) => {
  expect(presetOf(name).issuerOf(values)).toBe(issuer)
})

test.each([
  ['entra', { tenant: 'common' }],
  ['entra', { tenant: '../../evil' }],
  ['okta', {}],
  ['okta', { domain: 'http://example.okta.com' }],
  ['keycloak', { address: 'idp.test' }],
  ['keycloak', { address: 'javascript:alert(1)', realm: 'a' }],
  ['other', { issuer: 'idp' }],
  ['other', { issuer: 'https://ada@idp.test' }],
])('the preset of the provider %s derives no issuer from %j', (name, values) => {
  expect(presetOf(name).issuerOf(values)).toBeNull()
})

test('a signer made from a preset accepts only ID tokens for its client, and identifies users by a claim that never changes', () => {
  const found = {
    issuer: 'https://idp.test',
    jwksEndpoint: 'https://idp.test/keys',
    authorizationEndpoint: 'https://idp.test/auth',
  }
  const entra = presetOf('entra')
  const chosen = { name: 'staff', claim: entra.claim }
  expect(buildSignerBody(entra, { clientId: ' c1 ' }, chosen, found)).toEqual({
    name: 'staff',
    issuer: 'https://idp.test',
    audience: 'c1',
    enabled: true,
    jwksEndpoint: 'https://idp.test/keys',
    claimsProperty: '/oid',
    useExternalId: true,
    externalAuthUrl: 'https://idp.test',
    clientId: 'c1',
    scopes: ['openid', 'profile'],
    targetToken: 'ID',
  })
  const withoutLogIn = { ...found, authorizationEndpoint: null }
  expect(buildSignerBody(entra, { clientId: 'c1' }, chosen, withoutLogIn)).not.toHaveProperty(
    'externalAuthUrl',
  )
  expect(signerPresets.map(({ claim }) => claim)).not.toContain('/email')
})
