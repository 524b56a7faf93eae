import type { Authenticator } from '../../entities/authenticator.ts'
import type { JsonObject } from '../../lib/canonical-json.ts'
import type { Outcome } from '../../ports/proposer.ts'
import { faulty, refused } from '../commands/outcome.ts'
import type { State } from '../state.ts'
import type { KindRules, Write } from './kind-rules.ts'

export const authenticatorRules: KindRules = { judgeWrite: judgeAuthenticator }

function judgeAuthenticator(state: State, write: Write): Outcome | null {
  const { before, after } = write
  if (before === undefined) return newAuthenticatorRefusal(state, after)
  const hasMoved =
    before['username'] !== after['username'] || before['passwordHash'] !== after['passwordHash']
  if (before['method'] !== 'updb') return hasMoved ? refused('CAN_NOT_UPDATE_AUTHENTICATOR') : null
  return secretFault(after)
}

/** Without a name and a hash it would be an authenticator that nobody can use, and that stands in the way of one. */
function secretFault(after: JsonObject): Outcome | null {
  for (const [name, field] of [
    ['username', 'username'],
    ['passwordHash', 'password'],
  ] as const) {
    if (typeof after[name] === 'string' && after[name] !== '') continue
    return faulty({ field, reason: `${field} is required` })
  }
  return null
}

function newAuthenticatorRefusal(state: State, after: JsonObject): Outcome | null {
  const identityId = String(after['identityId'])
  const method = after['method']
  if (method !== 'updb') {
    return faulty({ field: 'method', reason: 'method in body should be one of [updb]' })
  }
  if (state.get('identity', identityId)?.['typeId'] === 'Router') {
    const reason = 'an identity of the type Router has no authenticators'
    return faulty({ field: 'identityId', reason, value: identityId })
  }
  for (const id of state.table('authenticator').indexes.ids('identityId', identityId)) {
    if (state.get<Authenticator>('authenticator', id)?.method === method) {
      return refused('MAX_AUTHENTICATOR_METHODS_REACHED')
    }
  }
  return secretFault(after)
}
