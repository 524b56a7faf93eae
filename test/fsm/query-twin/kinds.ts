import type { Json, JsonObject } from '../../../src/lib/text/canonical-json.ts'

/** A record as plain JSON. */
export type Plain = Readonly<Record<string, Json>> & { readonly id: string }

export type ValueType = 'text' | 'number' | 'bool' | 'time' | 'any' | 'set'

export interface World {
  records(kind: string): readonly Plain[]
}

/** Meaning of a symbol in filters, defined independently of the descriptors. */
export interface Meaning {
  readonly type: ValueType
  /** Value for a record; null: missing. */
  readonly of: (record: Plain, world: World) => Json
  /** The kind whose IDs the set contains. */
  readonly leadsTo?: string
}

const field =
  (type: ValueType, ...path: readonly string[]): Meaning['of'] =>
  (record) => {
    let value: Json | undefined = record
    for (const key of path) value = (value as JsonObject | undefined)?.[key]
    if (type === 'bool') return value ?? false
    return value ?? null
  }

const at = (type: ValueType, ...path: readonly string[]): Meaning => ({
  type,
  of: field(type, ...path),
})

const named = (kind: string, reference: string, symbol: Meaning): Meaning => ({
  type: symbol.type,
  of: (record, world) => {
    const other = world.records(kind).find(({ id }) => id === record[reference])
    if (other !== undefined) return symbol.of(other, world)
    return symbol.type === 'bool' ? false : null
  },
})

/**
 * Whether a role list selects a record: by ID, by `#all`, or by attributes. It never selects
 * services that exist only in the fabric API.
 */
function isMeant(record: Plain, roles: readonly string[], semantic: Json): boolean {
  if (record['isFabricOnly'] === true) return false
  if (roles.includes('#all') || roles.includes(`@${record.id}`)) return true
  const asked = roles.filter((role) => role.startsWith('#')).map((role) => role.slice(1))
  const own = record['roleAttributes'] as readonly string[]
  if (semantic === 'AnyOf') return asked.some((attribute) => own.includes(attribute))
  return asked.length > 0 && asked.every((attribute) => own.includes(attribute))
}

export function meantBy(policy: Plain, kind: string, world: World): string[] {
  const roles = policy[`${kind}Roles`] as readonly string[]
  return world
    .records(kind)
    .filter((record) => isMeant(record, roles, policy['semantic'] ?? null))
    .map(({ id }) => id)
}

const common: Readonly<Record<string, Meaning>> = {
  id: at('text', 'id'),
  createdAt: at('time', 'createdAt'),
  updatedAt: at('time', 'updatedAt'),
  isSystem: at('bool', 'isSystem'),
  'tags.n': at('any', 'tags', 'n'),
  'tags.where': at('any', 'tags', 'where'),
  'tags.some-key': at('any', 'tags', 'some-key'),
  'tags.none': at('any', 'tags', 'none'),
}
const name = at('text', 'name')

export const kinds: Readonly<Record<string, Readonly<Record<string, Meaning>>>> = {
  identity: {
    ...common,
    name,
    externalId: at('text', 'externalId'),
    type: at('text', 'typeId'),
    authPolicyId: at('text', 'authPolicyId'),
    isAdmin: at('bool', 'isAdmin'),
    isDefaultAdmin: at('bool', 'isDefaultAdmin'),
    roleAttributes: at('set', 'roleAttributes'),
  },
  service: {
    ...common,
    name,
    terminatorStrategy: at('text', 'terminatorStrategy'),
    isFabricOnly: at('bool', 'isFabricOnly'),
    roleAttributes: at('set', 'roleAttributes'),
    configs: { ...at('set', 'configs'), leadsTo: 'config' },
  },
  servicePolicy: {
    ...common,
    name,
    type: at('text', 'type'),
    semantic: at('text', 'semantic'),
    identityRoles: at('set', 'identityRoles'),
    serviceRoles: at('set', 'serviceRoles'),
    identities: {
      type: 'set',
      of: (record, world) => meantBy(record, 'identity', world),
      leadsTo: 'identity',
    },
    services: {
      type: 'set',
      of: (record, world) => meantBy(record, 'service', world),
      leadsTo: 'service',
    },
  },
  config: { ...common, name, type: at('text', 'configTypeId') },
  authenticator: {
    ...common,
    method: at('text', 'method'),
    identity: at('text', 'identityId'),
    updbUsername: at('text', 'username'),
    certFingerprint: at('text', 'fingerprint'),
    isIssuedByNetwork: at('bool', 'isIssuedByNetwork'),
    extendRequestedAt: at('time', 'extendRequestedAt'),
  },
  authPolicy: {
    ...common,
    name,
    'primary.cert.allowed': at('bool', 'primary', 'cert', 'allowed'),
    'primary.updb.minPasswordLength': at('number', 'primary', 'updb', 'minPasswordLength'),
    'primary.updb.maxAttempts': at('number', 'primary', 'updb', 'maxAttempts'),
    'secondary.requireTotp': at('bool', 'secondary', 'requireTotp'),
    'secondary.requireExtJwtSigner': at('text', 'secondary', 'requireExtJwtSigner'),
  },
  terminator: {
    ...common,
    binding: at('text', 'binding'),
    address: at('text', 'address'),
    instanceId: at('text', 'instanceId'),
    service: at('text', 'serviceId'),
    router: at('text', 'routerId'),
    'service.name': named('service', 'serviceId', name),
    'router.name': named('router', 'routerId', name),
  },
  /** A kind that exists only in these tests, with symbols that follow a reference. */
  hosting: {
    ...common,
    binding: at('text', 'binding'),
    service: at('text', 'serviceId'),
    'service.name': named('service', 'serviceId', name),
    'service.isFabricOnly': named('service', 'serviceId', at('bool', 'isFabricOnly')),
    'service.createdAt': named('service', 'serviceId', at('time', 'createdAt')),
  },
}

/** Lists cannot be sorted by symbols that follow a reference. */
export function isSortable(symbol: string, { type }: Meaning): boolean {
  return type !== 'any' && type !== 'set' && !/^(service|router)\./.test(symbol)
}
