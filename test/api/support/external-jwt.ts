import { afterAll, expect } from 'vitest'
import { jwkOf, KeyServer, TestProvider } from '../../support/identity-provider.ts'
import type { ApiLimits } from '../../../src/api/limits.ts'
import { CallerOf, client, management, type Reply } from './caller.ts'
import { controllerForFile, type ForFile } from './for-file.ts'

export interface WithProvider extends ForFile {
  readonly server: KeyServer
  readonly provider: TestProvider
  /** ID of the signer for `provider`. */
  readonly signerId: string
  /** @returns the ID of the signer. */
  newSigner(fields: object): Promise<string>
  /** A policy that differs from the default one. @returns its id. */
  newPolicy(name: string, given: { extJwt?: object; secondary?: object }): Promise<string>
  patch(kind: string, id: string, fields: object): Promise<void>
  logIn(token: string, base?: string): Promise<Reply>
}

/**
 * A controller that trusts an identity provider, whose keys a server on this host publishes over
 * HTTPS.
 */
export async function controllerWithProvider(
  limits: Partial<ApiLimits> = {},
  featureLevel?: number,
): Promise<WithProvider> {
  const server = await KeyServer.open([])
  afterAll(() => server.close())
  const rules = { allowsReserved: true, allowsHttp: false, refusedNetworks: [] }
  const file = await controllerForFile(
    limits,
    { ...rules, caPem: server.caPem },
    { allowsReservedSignerHosts: true },
    featureLevel,
  )
  const { controller, root } = file
  const provider = new TestProvider('https://idp.test', 'flotilla', () => controller.clock.nowMs())
  server.keys = [jwkOf(provider.key)]
  let serial = 0
  const newSigner = async (fields: object): Promise<string> => {
    serial += 1
    const { audience } = provider
    const issuer = `https://idp${serial}.test`
    const body = { name: `idp ${serial}`, issuer, audience, enabled: true, ...fields }
    return idOf(await root.call('POST', `${management}/external-jwt-signers`, body))
  }
  const signerId = await newSigner({ issuer: provider.issuer, jwksEndpoint: server.url })
  return {
    ...file,
    server,
    provider,
    signerId,
    newSigner,
    newPolicy: async (name, given) => {
      const { data } = (await root.get(`${management}/auth-policies/default`)).body
      const { primary, secondary } = data as { primary: { extJwt: object }; secondary: object }
      const body = {
        name,
        primary: { ...primary, extJwt: given.extJwt ?? primary.extJwt },
        secondary: { ...secondary, ...given.secondary },
      }
      return idOf(await root.call('POST', `${management}/auth-policies`, body))
    },
    patch: async (kind, id, fields) => {
      const reply = await root.call('PATCH', `${management}/${kind}/${id}`, fields)
      expect(reply.status, reply.text).toBe(200)
    },
    logIn: (token, base = client) => {
      const headers = { authorization: `Bearer ${token}` }
      const url = `${base}/authenticate?method=ext-jwt`
      return new CallerOf(controller).call('POST', url, {}, headers)
    },
  }
}

export function idOf(reply: Reply): string {
  expect(reply.status, reply.text).toBe(201)
  return (reply.body.data as { id: string }).id
}
