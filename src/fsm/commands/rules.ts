import type { Authenticator } from '../../entities/authenticator.ts'
import type { ConfigType } from '../../entities/config-type.ts'
import type { Config } from '../../entities/config.ts'
import type { Entity } from '../../entities/define.ts'
import type { JsonObject } from '../../lib/canonical-json.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../state.ts'
import { hasOtherAdmin, lastAdminReason } from './admins.ts'
import type { CommandContext } from './context.ts'
import { faulty, refused } from './outcome.ts'

/** A write that its fields and references allow. */
export interface Write {
  /** Undefined at create. */
  readonly before: EntityRecord | undefined
  /** Every field at an update; at create those given. */
  readonly after: JsonObject
}

type WriteRule = (state: State, write: Write, context: CommandContext) => Outcome | null
type DeleteRule = (state: State, record: EntityRecord, context: CommandContext) => Outcome | null

/** What can be said of a write of that kind only by looking at other records, beyond uniqueness and references. */
const writeRules: ReadonlyMap<string, WriteRule> = new Map<string, WriteRule>([
  ['authenticator', judgeAuthenticator],
  ['configType', judgeConfigType],
  ['identity', judgeIdentity],
  ['service', judgeService],
])

const deleteRules: ReadonlyMap<string, DeleteRule> = new Map<string, DeleteRule>([
  ['identity', judgeIdentityDelete],
])

export function writeRefusal(
  state: State,
  entity: Entity,
  write: Write,
  context: CommandContext,
): Outcome | null {
  return writeRules.get(entity.name)?.(state, write, context) ?? null
}

export function deleteRefusal(
  state: State,
  entity: Entity,
  record: EntityRecord,
  context: CommandContext,
): Outcome | null {
  return deleteRules.get(entity.name)?.(state, record, context) ?? null
}

function judgeIdentity(state: State, write: Write, context: CommandContext): Outcome | null {
  const { before, after } = write
  if (before?.['isAdmin'] !== true || after['isAdmin'] === true) return null
  if (hasOtherAdmin(state, before.id, context.logTimeMs)) return null
  return refused('ENTITY_CAN_NOT_BE_UPDATED', lastAdminReason)
}

function judgeIdentityDelete(
  state: State,
  record: EntityRecord,
  context: CommandContext,
): Outcome | null {
  if (record['isAdmin'] !== true || hasOtherAdmin(state, record.id, context.logTimeMs)) return null
  return refused('ENTITY_CAN_NOT_BE_DELETED', lastAdminReason)
}

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

/** Clients ask for `all` to mean every type. */
function judgeConfigType(_state: State, { after }: Write): Outcome | null {
  if (after['name'] !== 'all') return null
  return faulty({ field: 'name', reason: 'all is reserved for every config type', value: 'all' })
}

function judgeService(state: State, { before, after }: Write): Outcome | null {
  const configs = after['configs']
  if (!Array.isArray(configs) || configs === before?.['configs']) return null
  const typesSeen = new Map<string, string>()
  for (const id of configs as readonly string[]) {
    const typeId = state.get<Config>('config', id)?.configTypeId ?? ''
    const type = state.get<ConfigType>('configType', typeId)
    const name = type?.name ?? typeId
    if (type?.target !== 'service') {
      const reason = `config ${id} is of the type ${name}, which is not for services`
      return faulty({ field: 'configs', reason, value: id })
    }
    const other = typesSeen.get(typeId)
    if (other !== undefined) {
      const reason = `duplicate config types: ${other} and ${id} are both of the type ${name}`
      return faulty({ field: 'configs', reason, value: id })
    }
    typesSeen.set(typeId, id)
  }
  return null
}
