import { authenticator, type Authenticator } from '../../entities/kinds/authenticator.ts'
import type { Identity } from '../../entities/kinds/identity.ts'
import { normalise } from '../../entities/normalise.ts'
import type { RequestMode } from '../../entities/define.ts'
import { authPolicyOf } from '../../fsm/apply/authentication.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { passwordFault } from '../../auth/factors/password-rules.ts'
import { issuerOf } from '../../auth/certificates/trusted-authorities.ts'
import type { RequestContext } from '../call.ts'
import { checkKeyStrength, onlyCertificate } from './certificates.ts'
import type { WritePlan, Preparer } from './preparer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { ConfirmedReads } from '../consistency.ts'
import type { PasswordVerifier } from '../../auth/factors/password-verifier.ts'
import type { NetworkAuthorities } from '../../auth/certificates/network-authorities.ts'

interface Needs {
  readonly state: StateView
  readonly reads: ConfirmedReads
  readonly authorities: NetworkAuthorities
  readonly passwords: PasswordVerifier
}

/** User name and password, of which the command carries the hash alone, or a certificate. */
export function authenticatorPreparer(needs: Needs): Preparer {
  return async (call, mode, body) => {
    if (mode === 'create') checkCreate(body)
    const prepared = normalise(authenticator, mode, body)
    const isCert = mode === 'create' && body['method'] === 'cert'
    const credentials = isCert
      ? await certificateFields(needs, String(body['certPem']))
      : await credentialFields(needs, call, body, () =>
          mode === 'create'
            ? identityOf(needs, String(prepared.fields['identityId']))
            : holderOf(needs, call.param('id')),
        )
    return { ...prepared, fields: { ...prepared.fields, ...credentials } }
  }
}

const needs: Readonly<Record<string, readonly string[]>> = {
  cert: ['certPem'],
  updb: ['username', 'password'],
}

function checkCreate(body: JsonObject): void {
  const method = String(body['method'])
  const needed = Object.hasOwn(needs, method) ? needs[method] : undefined
  if (needed === undefined) {
    throw fieldProblem('method', 'method in body should be one of [updb cert]', method)
  }
  for (const field of needed) {
    if (typeof body[field] !== 'string' || body[field] === '') {
      throw fieldProblem(field, `${field} is required`)
    }
  }
}

/**
 * The certificate says all there is to say of its holder's key; who issued it must be trusted here.
 */
async function certificateFields(needs: Needs, certPem: string): Promise<JsonObject> {
  const certificate = onlyCertificate(certPem, 'COULD_NOT_PARSE_PEM_BLOCK')
  checkKeyStrength(certificate, 'certPem')
  const issuer = await needs.reads.latest(() => issuerOf(needs, certificate) ?? undefined)
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
 * A change by the holder, whose current password was right: the same, but judged on the record that
 * the password was right for.
 */
export async function prepareOwnChange(
  needs: Needs,
  call: RequestContext,
  mode: Exclude<RequestMode, 'create'>,
  body: JsonObject,
  own: Authenticator,
): Promise<WritePlan> {
  const prepared = normalise(authenticator, mode, body)
  const credentials = await credentialFields(needs, call, body, () =>
    identityOf(needs, own.identityId),
  )
  return {
    fields: { ...prepared.fields, ...credentials },
    ignoredFields: prepared.ignoredFields.filter((name) => name !== 'currentPassword'),
    judgedOn: [{ entity: 'authenticator', id: own.id, revision: own.revision }],
  }
}

async function credentialFields(
  needs: Needs,
  call: RequestContext,
  body: JsonObject,
  holder: () => Promise<Identity>,
): Promise<JsonObject> {
  const fields: Record<string, Json> = {}
  const { username, password } = body
  if (typeof username === 'string') fields['username'] = username
  if (typeof password !== 'string') return fields
  // A record of the request id would keep a plain hash over the password in the log.
  call.metadata.isRepeatable = false
  const identity = await holder()
  const reason = passwordFault(authPolicyOf(needs.state, identity), password)
  if (reason !== null) throw fieldProblem('password', reason)
  fields['passwordHash'] = await needs.passwords.hash(call, password)
  return fields
}

async function identityOf(needs: Needs, id: string): Promise<Identity> {
  const found = await needs.reads.latest(() => needs.state.get('identity', id))
  if (found !== undefined) return found
  throw new Problem('NOT_FOUND', { detail: `identity with id ${id.slice(0, 128)} not found` })
}

async function holderOf(needs: Needs, id: string): Promise<Identity> {
  const found = await needs.reads.latest(() => needs.state.get('authenticator', id))
  if (found === undefined) {
    throw new Problem('NOT_FOUND', { detail: `authenticator with id ${id} not found` })
  }
  if (found.method !== 'updb') throw new Problem('CAN_NOT_UPDATE_AUTHENTICATOR')
  return identityOf(needs, found.identityId)
}
