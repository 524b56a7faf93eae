import { authenticator, type Authenticator } from '../../entities/kinds/authenticator.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import type { RequestMode } from '../../entities/define-entity.ts'
import { identityAuthPolicy } from '../../fsm/apply/authentication.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { passwordFault } from '../../auth/factors/password-rules.ts'
import { findIssuingCa } from '../../auth/certificates/trusted-authorities.ts'
import type { RequestContext } from '../http/request-context.ts'
import { checkKeyStrength, parseSingleCertificate } from './certificates.ts'
import type { WritePlan, WritePreparer } from './write-preparer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { PasswordVerifier } from '../../auth/factors/password-verifier.ts'
import type { NetworkAuthorities } from '../../auth/certificates/network-authorities.ts'

interface AuthenticatorPreparerDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly authorities: NetworkAuthorities
  readonly passwords: PasswordVerifier
}

/**
 * Prepares an authenticator: a user name and password, or a certificate. The command contains only
 * the hash of the password.
 */
export function authenticatorPreparer(deps: AuthenticatorPreparerDeps): WritePreparer {
  return async (call, mode, body, id) => {
    if (mode === 'create') checkCreate(body)
    const prepared = normalizeBody(authenticator, mode, body)
    const isCert = mode === 'create' && body['method'] === 'cert'
    const credentials = isCert
      ? await certificateFields(deps, String(body['certPem']))
      : await credentialFields(deps, call, body, () =>
          mode === 'create'
            ? identityOf(deps, String(prepared.fields['identityId']))
            : holderOf(deps, id),
        )
    return { ...prepared, fields: { ...prepared.fields, ...credentials } }
  }
}

const deps: Readonly<Record<string, readonly string[]>> = {
  cert: ['certPem'],
  updb: ['username', 'password'],
}

function checkCreate(body: JsonObject): void {
  const method = String(body['method'])
  const needed = Object.hasOwn(deps, method) ? deps[method] : undefined
  if (needed === undefined) {
    throw fieldProblem('method', 'method in body should be one of [updb cert]', method)
  }
  for (const field of needed) {
    if (typeof body[field] !== 'string' || body[field] === '') {
      throw fieldProblem(field, `${field} is required`)
    }
  }
}

/** Derives fields from a certificate. A CA that the network trusts must have issued it. */
async function certificateFields(
  deps: AuthenticatorPreparerDeps,
  certPem: string,
): Promise<JsonObject> {
  const certificate = parseSingleCertificate(certPem, 'COULD_NOT_PARSE_PEM_BLOCK')
  checkKeyStrength(certificate, 'certPem')
  const issuer = await deps.reads.latest(() => findIssuingCa(deps, certificate) ?? undefined)
  if (issuer === undefined) {
    const reason = 'the certificate chains neither to a CA of the network nor to a verified CA'
    throw fieldProblem('certPem', reason)
  }
  return {
    certPem: certificate.pem,
    fingerprint: certificate.sha1,
    publicKeyPrint: Buffer.from(certificate.publicKeySha256).toString('hex'),
    caId: issuer.by === 'ca' ? issuer.caId : '',
  }
}

/**
 * Prepares a change that an identity makes to its own authenticator. The caller must have checked
 * the current password with the record `own`; if the record has changed since, the state machine
 * refuses the change.
 */
export async function prepareOwnAuthenticatorChange(
  deps: AuthenticatorPreparerDeps,
  call: RequestContext,
  mode: Exclude<RequestMode, 'create'>,
  body: JsonObject,
  own: Authenticator,
): Promise<WritePlan> {
  const prepared = normalizeBody(authenticator, mode, body)
  const credentials = await credentialFields(deps, call, body, () =>
    identityOf(deps, own.identityId),
  )
  return {
    fields: { ...prepared.fields, ...credentials },
    ignoredFields: prepared.ignoredFields.filter((name) => name !== 'currentPassword'),
    judgedOn: [{ entity: 'authenticator', id: own.id, revision: own.revision }],
  }
}

async function credentialFields(
  deps: AuthenticatorPreparerDeps,
  call: RequestContext,
  body: JsonObject,
  holder: () => Promise<Identity>,
): Promise<JsonObject> {
  const fields: Record<string, Json> = {}
  const { username, password } = body
  if (typeof username === 'string') fields['username'] = username
  if (typeof password !== 'string') return fields
  // Stores no request id: together with the id, the log would store an unsalted hash of the
  // request, and the request contains the password.
  call.metadata.isRepeatable = false
  const identity = await holder()
  const reason = passwordFault(identityAuthPolicy(deps.state, identity), password)
  if (reason !== null) throw fieldProblem('password', reason)
  fields['passwordHash'] = await deps.passwords.hash(call, password)
  return fields
}

async function identityOf(deps: AuthenticatorPreparerDeps, id: string): Promise<Identity> {
  const found = await deps.reads.latest(() => deps.state.get('identity', id))
  if (found !== undefined) return found
  throw new Problem('NOT_FOUND', { detail: `identity with id ${id.slice(0, 128)} not found` })
}

async function holderOf(deps: AuthenticatorPreparerDeps, id: string): Promise<Identity> {
  const found = await deps.reads.latest(() => deps.state.get('authenticator', id))
  if (found === undefined) {
    throw new Problem('NOT_FOUND', { detail: `authenticator with id ${id} not found` })
  }
  if (found.method !== 'updb') throw new Problem('CAN_NOT_UPDATE_AUTHENTICATOR')
  return identityOf(deps, found.identityId)
}
