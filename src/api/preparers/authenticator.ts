import { authenticator } from '../../entities/authenticator.ts'
import type { Authenticator } from '../../entities/authenticator.ts'
import type { AuthPolicy } from '../../entities/auth-policy.ts'
import type { Identity } from '../../entities/identity.ts'
import { normalise } from '../../entities/normalise.ts'
import type { RequestMode } from '../../entities/schema.ts'
import type { Json, JsonObject } from '../../lib/canonical-json.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { passwordReason } from '../auth/password-rules.ts'
import type { Call } from '../call.ts'
import { latest } from '../consistency.ts'
import type { ApiParts } from '../parts.ts'
import type { ApiServices } from '../services.ts'
import type { Prepared, Preparer } from './preparer.ts'

type Services = Pick<ApiServices, 'passwords'>

/** User name and password; the command carries the hash alone. */
export function authenticatorPreparer(parts: ApiParts, services: Services): Preparer {
  return async (call, mode, body) => {
    if (mode === 'create') checkCreate(body)
    const prepared = normalise(authenticator, mode, body)
    const credentials = await credentialFields(parts, services, call, body, () =>
      mode === 'create'
        ? identityOf(parts, String(prepared.fields['identityId']))
        : holderOf(parts, call.param('id')),
    )
    return { ...prepared, fields: { ...prepared.fields, ...credentials } }
  }
}

function checkCreate(body: JsonObject): void {
  if (body['method'] === 'cert') {
    const reason =
      'certificates are not taken yet; create an authenticator of the method updb, with username and password'
    throw fieldProblem('method', reason, 'cert')
  }
  for (const field of ['username', 'password']) {
    if (typeof body[field] !== 'string') throw fieldProblem(field, `${field} is required`)
  }
}

/**
 * A change by the holder, whose current password was right: the same, but judged on the record that the password was right
 * for.
 */
export async function prepareOwnChange(
  parts: ApiParts,
  services: Services,
  call: Call,
  mode: Exclude<RequestMode, 'create'>,
  body: JsonObject,
  own: Authenticator,
): Promise<Prepared> {
  const prepared = normalise(authenticator, mode, body)
  const credentials = await credentialFields(parts, services, call, body, () =>
    identityOf(parts, own.identityId),
  )
  return {
    fields: { ...prepared.fields, ...credentials },
    ignoredFields: prepared.ignoredFields.filter((name) => name !== 'currentPassword'),
    judgedOn: [{ entity: 'authenticator', id: own.id, revision: own.revision }],
  }
}

async function credentialFields(
  parts: ApiParts,
  services: Services,
  call: Call,
  body: JsonObject,
  holder: () => Promise<Identity>,
): Promise<JsonObject> {
  const fields: Record<string, Json> = {}
  const { username, password } = body
  if (typeof username === 'string') fields['username'] = username
  if (typeof password !== 'string') return fields
  // A record of the request id would keep a plain hash over the password in the log.
  call.isRepeatable = false
  const identity = await holder()
  const policy = parts.state.get<AuthPolicy>('authPolicy', identity.authPolicyId)
  const reason = policy === undefined ? null : passwordReason(policy.primary.updb, password)
  if (reason !== null) throw fieldProblem('password', reason)
  fields['passwordHash'] = await services.passwords.hash(password)
  return fields
}

async function identityOf(parts: ApiParts, id: string): Promise<Identity> {
  const found = await latest(parts, () => parts.state.get<Identity>('identity', id))
  if (found !== undefined) return found
  throw new Problem('NOT_FOUND', { detail: `identity with id ${id.slice(0, 128)} not found` })
}

async function holderOf(parts: ApiParts, id: string): Promise<Identity> {
  const found = await latest(parts, () => parts.state.get<Authenticator>('authenticator', id))
  if (found === undefined) {
    throw new Problem('NOT_FOUND', { detail: `authenticator with id ${id} not found` })
  }
  if (found.method !== 'updb') throw new Problem('CAN_NOT_UPDATE_AUTHENTICATOR')
  return identityOf(parts, found.identityId)
}
