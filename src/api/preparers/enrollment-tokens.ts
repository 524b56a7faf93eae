import { randomUUID } from 'node:crypto'
import type { EnrollmentMethod } from '../../entities/kinds/enrollment.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem } from '../../lib/problems.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import type { ApiVersionsKey } from '../api-deps.ts'

interface ClientApiUrlDeps {
  readonly cluster: ClusterView
  readonly jwt: JwtSigner
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
}

interface NewToken {
  readonly method: EnrollmentMethod
  /** Id of the identity or router that enrolls with the token. */
  readonly subjectId: string
  /** Expiry of the token, UTC ms. */
  readonly expiresAtMs: number
}

const routerMethods: ReadonlySet<EnrollmentMethod> = new Set(['erott', 'trott'])

/** `https://host:port` of this controller's client API, the issuer in enrollment tokens. */
function clientApiUrl({ bindings }: Pick<ClientApiUrlDeps, 'bindings'>): string {
  const url = bindings['edge-client']?.[0]
  if (url !== undefined) return url
  throw new Problem('UNHANDLED', {
    detail: 'this controller does not serve the client API; use one that does',
  })
}

/**
 * A one-time token, and its JWT with subject, issuer and expiry. Clients verify the JWT with the
 * certificate of the server at `iss`, so this controller signs the JWT and names its own address as
 * `iss`.
 */
export async function newEnrollmentToken(
  deps: ClientApiUrlDeps,
  { method, subjectId, expiresAtMs }: NewToken,
): Promise<{ readonly token: string; readonly jwt: string; readonly expiresAt: number }> {
  const token = randomUUID()
  const jwt = await deps.jwt.sign({
    iss: clientApiUrl(deps),
    sub: subjectId,
    aud: [''],
    exp: Math.floor(expiresAtMs / 1000),
    jti: token,
    em: method,
    // Routers connect to these addresses if their configuration names no controller. Identities
    // find controllers through `iss`.
    ctrls: routerMethods.has(method) ? routerAddresses(deps) : [],
  })
  return { token, jwt, expiresAt: expiresAtMs }
}

/** The addresses at which members accept routers, as far as this controller knows them. */
function routerAddresses({ cluster }: Pick<ClientApiUrlDeps, 'cluster'>): string[] {
  return cluster.members().flatMap((member) => member.routerAddresses)
}

/**
 * A JWT that contains the address of this controller, for clients that know nothing else about the
 * network.
 */
export function issueNetworkJwt(deps: Omit<ClientApiUrlDeps, 'cluster'>): Promise<string> {
  const address = `${clientApiUrl(deps)}/`
  const claims: JsonObject = {
    iss: address,
    sub: address,
    aud: ['openziti-enroller'],
    jti: randomUUID(),
    em: 'network',
  }
  return deps.jwt.sign(claims)
}
