/** Values that the user copies from the admin console of an identity provider. */
export const presetFieldNames = [
  'clientId',
  'tenant',
  'domain',
  'server',
  'address',
  'realm',
  'issuer',
] as const
export type PresetFieldName = (typeof presetFieldNames)[number]

export interface PresetField {
  readonly name: PresetFieldName
  readonly isOptional?: boolean
}

export type PresetValues = Readonly<Partial<Record<PresetFieldName, string>>>

/**
 * The fields that the user fills in for one identity provider, and the signer values that follow
 * from the provider.
 */
export interface SignerPreset {
  readonly name: string
  /** Name of the provider, as users see it. */
  readonly label: string
  readonly fields: readonly PresetField[]
  /** Returns the issuer; null if values are missing or invalid. */
  readonly issuerOf: (values: PresetValues) => string | null
  /**
   * JSON pointer to the claim that identifies an account: the provider never gives its value to
   * another account.
   */
  readonly claim: string
  readonly scopes: readonly string[]
}

const clientId: PresetField = { name: 'clientId' }

/** The value without surrounding white space and trailing slashes. */
function plain(values: PresetValues, name: PresetFieldName): string {
  return (values[name] ?? '').trim().replace(/\/+$/, '')
}

/** Returns the text if it is an `https` URL without credentials; otherwise null. */
function httpsAddress(text: string): string | null {
  const url = URL.parse(text)
  const hasNoCredentials = url?.username === '' && url.password === ''
  return url?.protocol === 'https:' && hasNoCredentials && !/\s/.test(text) ? text : null
}

function withHttps(text: string): string {
  return /^[a-z]+:\/\//i.test(text) ? text : `https://${text}`
}

export const signerPresets: readonly SignerPreset[] = [
  {
    name: 'google',
    label: 'Google',
    fields: [clientId],
    issuerOf: () => 'https://accounts.google.com',
    claim: '/sub',
    scopes: ['openid', 'email'],
  },
  {
    name: 'entra',
    label: 'Microsoft Entra ID',
    fields: [{ name: 'tenant' }, clientId],
    issuerOf: (values) => {
      const tenant = plain(values, 'tenant')
      // A tenant name such as `common` accepts accounts of every tenant, and tokens never contain
      // it as their issuer.
      const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(tenant)
      return isId ? `https://login.microsoftonline.com/${tenant.toLowerCase()}/v2.0` : null
    },
    claim: '/oid',
    scopes: ['openid', 'profile'],
  },
  {
    name: 'okta',
    label: 'Okta',
    fields: [{ name: 'domain' }, { name: 'server', isOptional: true }, clientId],
    issuerOf: (values) => {
      const domain = plain(values, 'domain')
      const server = plain(values, 'server')
      if (domain === '') return null
      const path = server === '' ? '' : `/oauth2/${encodeURIComponent(server)}`
      return httpsAddress(`${withHttps(domain)}${path}`)
    },
    claim: '/sub',
    scopes: ['openid', 'profile'],
  },
  {
    name: 'keycloak',
    label: 'Keycloak',
    fields: [{ name: 'address' }, { name: 'realm' }, clientId],
    issuerOf: (values) => {
      const [address, realm] = [plain(values, 'address'), plain(values, 'realm')]
      if (address === '' || realm === '') return null
      return httpsAddress(`${withHttps(address)}/realms/${encodeURIComponent(realm)}`)
    },
    claim: '/sub',
    scopes: ['openid', 'profile'],
  },
  {
    name: 'other',
    label: 'Another OpenID provider',
    fields: [{ name: 'issuer' }, clientId],
    // Keeps trailing slashes, because issuers are compared character by character.
    issuerOf: (values) => httpsAddress((values.issuer ?? '').trim()),
    claim: '/sub',
    scopes: ['openid', 'profile'],
  },
]

/** The preset of a provider; undefined if no preset has the name. */
export function signerPreset(name: string): SignerPreset | undefined {
  return signerPresets.find((one) => one.name === name)
}

/** The fields of the provider's discovery document that a signer needs. */
export interface FoundProvider {
  readonly issuer: string
  readonly jwksEndpoint: string
  readonly authorizationEndpoint: string | null
}

/** The request body that creates a signer. */
export function buildSignerBody(
  preset: SignerPreset,
  values: PresetValues,
  { name, claim }: { readonly name: string; readonly claim: string },
  found: FoundProvider,
): Readonly<Record<string, unknown>> {
  const client = plain(values, 'clientId')
  return {
    name,
    issuer: found.issuer,
    audience: client,
    enabled: true,
    jwksEndpoint: found.jwksEndpoint,
    claimsProperty: claim,
    useExternalId: true,
    // Clients start at the issuer: its discovery document contains the endpoint for the log-in.
    ...(found.authorizationEndpoint === null ? {} : { externalAuthUrl: found.issuer }),
    clientId: client,
    scopes: preset.scopes,
    targetToken: 'ID',
  }
}
