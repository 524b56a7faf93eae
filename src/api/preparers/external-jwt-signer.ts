import { externalJwtSigner } from '../../entities/kinds/external-jwt-signer.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import type { RequestMode } from '../../entities/define-entity.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { type FieldFault, Problem } from '../../lib/problems.ts'
import { isReservedHost } from '../../lib/reserved-hosts.ts'
import { checkKeyStrength, parseSingleCertificate } from './certificates.ts'
import type { WritePlan, WritePreparer } from './write-preparer.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'

interface ExternalJwtSignerPreparerDeps {
  readonly cluster: ClusterView
  readonly jwt: JwtSigner
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly allowsReservedSignerHosts: boolean
}

/** URL fields, each with OpenZiti's error code for an unusable URL. */
const urls = [
  ['externalAuthUrl', 'COULD_NOT_VALIDATE'],
  ['jwksEndpoint', 'INVALID_FIELD'],
] as const

/** Values of the fields that describe a certificate, for a signer without a certificate. */
const noCertificate = { commonName: '', fingerprint: '', notBefore: null, notAfter: null } as const

/**
 * Prepares an external JWT signer: checks its URLs, and derives fields from its certificate. If the
 * body has a certificate and no `kid`, the fingerprint of the certificate becomes the `kid`, unless
 * a patch changes a signer whose `kid` was chosen earlier.
 */
export function externalJwtSignerPreparer(deps: ExternalJwtSignerPreparerDeps): WritePreparer {
  return async (_call, mode, body, id) => {
    const prepared = normalizeBody(externalJwtSigner, mode, body)
    for (const [name, code] of urls) {
      const fault = urlFault(name, prepared.fields[name], deps.allowsReservedSignerHosts)
      if (fault !== null) throw new Problem(code, { fault })
    }
    refuseControllers(deps, prepared.fields)
    const { certPem } = prepared.fields
    if (certPem === undefined) return prepared
    if (certPem === null) return withFields(prepared, { ...noCertificate, kid: '' })
    const { fields, pem } = certificateFields(String(certPem))
    const kid = kidOf(prepared.fields['kid'])
    if (kid !== null) return withFields(prepared, { ...fields, certPem: pem })
    const known = await knownKid(deps, id, mode)
    return {
      ...withFields(prepared, { ...fields, certPem: pem, kid: known.kid ?? fields.fingerprint }),
      ...(known.judgedOn === undefined ? {} : { judgedOn: known.judgedOn }),
    }
  }
}

/**
 * Refuses a controller of this network as a signer: otherwise tokens that controllers issued for
 * other purposes could be used to log in.
 */
function refuseControllers(
  { cluster, jwt }: ExternalJwtSignerPreparerDeps,
  fields: JsonObject,
): void {
  const origins = new Set(
    cluster
      .members()
      .flatMap(({ apiAddresses }) => apiAddresses.map(({ url }) => URL.parse(url)?.origin)),
  )
  const reason = 'must not be that of a controller of this network'
  for (const field of ['issuer', 'jwksEndpoint']) {
    const value = fields[field]
    const origin = typeof value === 'string' ? URL.parse(value)?.origin : undefined
    // @guard oidc/tokens--provider
    if (origin === undefined || origin === 'null' || !origins.has(origin)) continue
    throw new Problem('COULD_NOT_VALIDATE', { fault: { field, reason, value } })
  }
  const { certPem, kid } = fields
  if (typeof kid === 'string' && jwt.publicJwks().some((key) => key['kid'] === kid)) {
    throw new Problem('COULD_NOT_VALIDATE', { fault: { field: 'kid', reason, value: kid } })
  }
  if (typeof certPem !== 'string') return
  const { publicKeySha256 } = parseSingleCertificate(certPem, 'INVALID_CERT_PEM')
  // @guard oidc/tokens--certificate
  if (!jwt.isMemberKey(Buffer.from(publicKeySha256).toString('hex'))) return
  throw new Problem('COULD_NOT_VALIDATE', { fault: { field: 'certPem', reason } })
}

function withFields(prepared: WritePlan, fields: JsonObject): WritePlan {
  return { ...prepared, fields: { ...prepared.fields, ...fields } }
}

function kidOf(kid: Json | undefined): string | null {
  return typeof kid === 'string' && kid !== '' ? kid : null
}

function certificateFields(certPem: string) {
  const certificate = parseSingleCertificate(certPem, 'INVALID_CERT_PEM')
  checkKeyStrength(certificate, 'certPem')
  const { pem, commonName, sha1, notBeforeMs, notAfterMs } = certificate
  const fields = {
    commonName: commonName ?? '',
    fingerprint: sha1,
    notBefore: notBeforeMs,
    notAfter: notAfterMs,
  }
  return { pem, fields }
}

/**
 * The stored `kid`, if a caller chose it and a patch therefore keeps it; null if the fingerprint of
 * the new certificate becomes the `kid`.
 */
async function knownKid(
  { state, reads }: ExternalJwtSignerPreparerDeps,
  id: string,
  mode: RequestMode,
): Promise<{ readonly kid: string | null; readonly judgedOn?: WritePlan['judgedOn'] }> {
  if (mode !== 'patch') return { kid: null }
  const stored = await reads.latest(() => state.get('externalJwtSigner', id))
  if (stored === undefined) {
    throw new Problem('NOT_FOUND', { detail: `externalJwtSigner with id ${id} not found` })
  }
  const { kid, fingerprint, revision } = stored
  const judgedOn = [{ entity: 'externalJwtSigner', id, revision } as const]
  return { kid: kid === '' || kid === fingerprint ? null : kid, judgedOn }
}

/**
 * The fault of a URL that is not an absolute http or https URL, contains a user name or password,
 * or names a reserved host that the configuration does not allow. The URL is not fetched here, and
 * its host name is not resolved.
 */
function urlFault(
  field: string,
  value: Json | undefined,
  allowsReserved: boolean,
): FieldFault | null {
  if (typeof value !== 'string' || value === '') return null
  const url = URL.parse(value)
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (!isWeb || url.username !== '' || url.password !== '') {
    // Does not repeat the URL in the reason, because the URL may contain credentials.
    return { field, reason: `${field} must be an http or https URL without credentials` }
  }
  // @guard signer-endpoint-on-this-host--metadata
  if (isReservedHost(url, true)) {
    return { field, reason: `${field} must not lead to a link-local or metadata address`, value }
  }
  // @guard signer-endpoint-on-this-host
  if (!allowsReserved && isReservedHost(url)) {
    const reason = `${field} must not lead to a loopback or unspecified address, unless the configuration allows it (api.reservedSignerHosts)`
    return { field, reason, value }
  }
  return null
}
