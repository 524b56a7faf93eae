import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Entity, EntityApi } from '../../../src/entities/define-entity.ts'
import {
  permissivePrimaryRules,
  permissiveSecondaryRules,
} from '../../../src/entities/parts/auth-policy-factors.ts'
import { entities, findEntity } from '../../../src/entities/registry.ts'
import { requestSchema } from '../../../src/entities/schema.ts'
import { isObject } from '../../../src/entities/check-fields.ts'
import { canonicalJson, type Json, type JsonObject } from '../../../src/lib/text/canonical-json.ts'
import { bases } from '../../support/served-answers.ts'
import { controllerForFile } from '../support/for-file.ts'
import { authorityPem, certificatePem } from './certificates.ts'
import { uniqueText } from './schemas.ts'

// Goal: a PATCH keeps every field that it does not contain, for every kind. Method: a record of
// each kind with a non-default value in every field, and a PATCH of one member at a time, also of a
// member within a merged object. The stored record may differ only in this member.

const { controller, root } = await controllerForFile()

/** A body with all writable members; for turn 1, each value differs from that for turn 0. */
type Body = (turn: 0 | 1) => Promise<JsonObject>

interface Example {
  readonly entity: string
  readonly body: Body
  /**
   * Names under which the store has a member, if they differ from the member's name; an empty list
   * if the member is ignored.
   */
  readonly stored?: Readonly<Record<string, readonly string[]>>
  /** Members that every PATCH of the kind must contain. */
  readonly always?: JsonObject
}

const made = new Map<string, Promise<string>>()
/** The ID of a record to which other records refer: the same record for the same arguments. */
function id(collection: string, body: JsonObject, turn = 0): Promise<string> {
  const key = `${collection} ${turn}`
  const known = made.get(key) ?? create('management', collection, body)
  made.set(key, known)
  return known
}

async function create(api: EntityApi, collection: string, body: JsonObject): Promise<string> {
  const reply = await root.call('POST', `${bases[api]}/${collection}`, body)
  expect(reply.status, `${collection} ${JSON.stringify(body)}: ${reply.text}`).toBe(201)
  return (reply.body.data as { id: string }).id
}

const named = (): { name: string } => ({ name: uniqueText('patched') })
const pick = <T>(turn: 0 | 1, first: T, second: T): T => (turn === 0 ? first : second)
const tags = (turn: 0 | 1): JsonObject => ({ [`tag${turn}`]: 'set' })
const semantic = (turn: 0 | 1): string => pick(turn, 'AnyOf', 'AllOf')
const roles = (turn: 0 | 1): string[] => [`#role${turn}`]
const serviceId = (turn = 0): Promise<string> =>
  id('services', { ...named(), encryptionRequired: true }, turn)
const routerId = (turn = 0): Promise<string> => id('edge-routers', named(), turn)
const signerId = (turn = 0): Promise<string> => {
  const issuer = uniqueText('https://issuer')
  const jwksEndpoint = 'https://issuer.test/keys'
  return id(
    'external-jwt-signers',
    { ...named(), issuer, audience: 'us', enabled: true, jwksEndpoint },
    turn,
  )
}
async function configId(turn: 0 | 1, target = 'service'): Promise<string> {
  const type = await create('management', 'config-types', { ...named(), target })
  return id(`configs`, { ...named(), configTypeId: type, data: { some: target } }, turn)
}
async function routerConfigId(turn: 0 | 1): Promise<string> {
  const type = await create('management', 'config-types', { ...named(), target: 'router' })
  return create('management', 'configs', { ...named(), configTypeId: type, data: { turn } })
}

const policy = async (turn: 0 | 1): Promise<JsonObject> => ({
  ...named(),
  semantic: semantic(turn),
  tags: tags(turn),
})
const anyRouter = async (turn: 0 | 1): Promise<JsonObject> => ({
  ...named(),
  cost: 1 + turn,
  noTraversal: turn === 0,
  disabled: turn === 0,
  ctrlChanListeners: { 'tls:here:1': [`group${turn}`] },
  configs: [await routerConfigId(turn)],
  allowedNames: [`r${turn}.test`],
  tags: tags(turn),
})
const anyService = async (turn: 0 | 1): Promise<JsonObject> => ({
  ...named(),
  terminatorStrategy: pick(turn, 'weighted', 'random'),
  maxIdleTimeMillis: 1 + turn,
  tags: tags(turn),
})
const anyTerminator = async (turn: 0 | 1): Promise<JsonObject> => ({
  service: await serviceId(),
  router: await routerId(turn),
  binding: `binding${turn}`,
  address: `tls:host${turn}:1`,
  cost: 1 + turn,
  precedence: pick(turn, 'required', 'failed'),
  tags: tags(turn),
})
/** An auth policy that permits its identities to log in by every method that they have. */
const openPolicyId = (turn: 0 | 1): Promise<string> =>
  id(
    'auth-policies',
    {
      ...named(),
      primary: permissivePrimaryRules as unknown as Json,
      secondary: permissiveSecondaryRules as unknown as Json,
    },
    turn,
  )
const anySigner = async (turn: 0 | 1): Promise<JsonObject> => ({
  ...named(),
  audience: `us${turn}`,
  clientId: `client${turn}`,
  externalAuthUrl: `https://there${turn}.test/`,
  scopes: [`scope${turn}`],
  targetToken: pick(turn, 'ID', 'ACCESS'),
  enrollToCertEnabled: turn === 0,
  enrollToTokenEnabled: turn === 0,
  enabled: turn === 0,
  issuer: uniqueText('https://issuer'),
  claimsProperty: `/claim${turn}`,
  useExternalId: turn === 0,
  enrollAuthPolicyId: await openPolicyId(turn),
  enrollNameClaimsSelector: `/name${turn}`,
  enrollAttributeClaimsSelector: `/attribute${turn}`,
  tags: tags(turn),
})
async function anyAuthPolicy(turn: 0 | 1): Promise<JsonObject> {
  return {
    ...named(),
    primary: {
      cert: { allowed: turn === 1, allowExpiredCerts: turn === 1 },
      extJwt: { allowed: turn === 1, allowedSigners: [await signerId(turn)] },
      updb: {
        allowed: turn === 1,
        lockoutDurationMinutes: 1 + turn,
        maxAttempts: 1 + turn,
        minPasswordLength: 10 + turn,
        requireMixedCase: turn === 0,
        requireNumberChar: turn === 0,
        requireSpecialChar: turn === 0,
      },
    },
    secondary: { requireExtJwtSigner: await signerId(turn), requireTotp: turn === 0 },
    tags: tags(turn),
  }
}
function check(typeId: string, fields: (turn: 0 | 1) => JsonObject): Example {
  const body = async (turn: 0 | 1): Promise<JsonObject> => ({
    ...named(),
    typeId,
    roleAttributes: [`role${turn}`],
    tags: tags(turn),
    ...fields(turn),
  })
  return { entity: 'postureCheck', body, always: { typeId } }
}
const process = (turn: 0 | 1): JsonObject => ({
  hashes: [`${turn}`.repeat(64)],
  osType: pick(turn, 'Linux', 'macOS'),
  path: `/bin/${turn}`,
})
const fingerprint = (): string => randomUUID().replaceAll('-', '')

const ofCertificate = ['certPem', 'commonName', 'fingerprint', 'notBefore', 'notAfter']

const examples: readonly Example[] = [
  {
    entity: 'authPolicy',
    body: anyAuthPolicy,
    stored: {
      'primary.extJwt.allowedSigners': ['primary.extJwt.allowedSigners', 'allowedSignerIds'],
      'secondary.requireExtJwtSigner': ['secondary.requireExtJwtSigner', 'requiredSignerIds'],
    },
  },
  {
    entity: 'authenticator',
    body: async (turn) => ({
      method: 'updb',
      identityId: await create('management', 'identities', {
        ...named(),
        type: 'User',
        isAdmin: false,
      }),
      username: uniqueText('user'),
      password: uniqueText('a password as any'),
      tags: tags(turn),
    }),
    stored: { password: ['passwordHash'] },
  },
  {
    entity: 'ca',
    body: async (turn) => ({
      ...named(),
      certPem: await authorityPem(),
      identityNameFormat: `[caName] ${turn}`,
      identityRoles: [`role${turn}`],
      isAuthEnabled: turn === 0,
      isAutoCaEnrollmentEnabled: turn === 0,
      isOttCaEnrollmentEnabled: turn === 0,
      externalIdClaim: {
        index: 1 + turn,
        location: pick(turn, 'SAN_EMAIL', 'COMMON_NAME'),
        matcher: pick(turn, 'PREFIX', 'SUFFIX'),
        matcherCriteria: `criteria${turn}`,
        parser: pick(turn, 'SPLIT', 'NONE'),
        parserCriteria: `,${turn}`,
      },
      tags: tags(turn),
    }),
  },
  {
    entity: 'config',
    body: async (turn) => ({
      ...named(),
      configTypeId: await id('config-types', named()),
      data: { [`a${turn}`]: { b: turn } },
      tags: tags(turn),
    }),
  },
  {
    entity: 'configType',
    body: async (turn) => ({
      ...named(),
      schema: { type: 'object', title: `t${turn}` },
      target: pick(turn, 'router', 'other'),
      tags: tags(turn),
    }),
  },
  {
    entity: 'edgeRouter',
    body: async (turn) => ({
      ...(await anyRouter(turn)),
      isTunnelerEnabled: turn === 0,
      roleAttributes: [`role${turn}`],
      appData: { [`a${turn}`]: 'b' },
    }),
  },
  {
    entity: 'edgeRouterPolicy',
    body: async (turn) => ({
      ...(await policy(turn)),
      identityRoles: roles(turn),
      edgeRouterRoles: roles(turn),
    }),
  },
  {
    entity: 'externalJwtSigner',
    body: async (turn) => ({
      ...(await anySigner(turn)),
      certPem: await certificatePem(),
      kid: uniqueText('kid'),
    }),
    stored: { certPem: ofCertificate },
  },
  {
    entity: 'externalJwtSigner',
    body: async (turn) => ({
      ...(await anySigner(turn)),
      jwksEndpoint: `https://keys${turn}.test/keys`,
    }),
  },
  { entity: 'fabricService', body: anyService },
  {
    entity: 'fabricRouter',
    body: async (turn) => ({
      ...(await anyRouter(turn)),
      id: uniqueText('router'),
      fingerprint: fingerprint(),
    }),
  },
  {
    entity: 'fabricTerminator',
    body: async (turn) => ({
      ...(await anyTerminator(turn)),
      instanceId: 'one',
      instanceSecret: 'c2VjcmV0',
      hostId: 'host',
    }),
    stored: { service: [], router: ['routerId'] },
  },
  {
    entity: 'identity',
    body: async (turn) => ({
      ...named(),
      type: pick(turn, 'Device', 'User'),
      isAdmin: turn === 0,
      authPolicyId: await openPolicyId(turn),
      externalId: uniqueText('external'),
      roleAttributes: ['limited', `role${turn}`],
      roleAttributesExpireAt: { limited: `209${turn}-01-01T00:00:00Z` },
      appData: { [`a${turn}`]: 'b' },
      defaultHostingCost: 1 + turn,
      defaultHostingPrecedence: pick(turn, 'required', 'failed'),
      serviceHostingCosts: { [await serviceId()]: 1 + turn },
      serviceHostingPrecedences: { [await serviceId()]: pick(turn, 'required', 'failed') },
      permissions: [pick(turn, 'ops.read', 'service.read')],
      tags: tags(turn),
    }),
    stored: {
      type: ['typeId'],
      'roleAttributesExpireAt.limited': ['roleAttributesExpireAt.limited', 'roleAttributeEndsAt'],
    },
  },
  check('OS', (turn) => ({
    operatingSystems: [{ type: pick(turn, 'Linux', 'macOS'), versions: [`>=1${turn}.0.0`] }],
  })),
  check('DOMAIN', (turn) => ({ domains: [`corp${turn}.test`] })),
  check('MAC', (turn) => ({ macAddresses: [`001b44113ab${turn}`] })),
  check('PROCESS', (turn) => ({
    process: { ...process(turn), signerFingerprint: `${turn}`.repeat(40) },
  })),
  check('PROCESS_MULTI', (turn) => ({
    processes: [{ ...process(turn), signerFingerprints: [`${turn}`.repeat(40)] }],
    semantic: semantic(turn),
  })),
  check('MFA', (turn) => ({
    timeoutSeconds: 100 + turn,
    promptOnWake: turn === 0,
    promptOnUnlock: turn === 0,
    ignoreLegacyEndpoints: turn === 0,
  })),
  { entity: 'router', body: anyRouter },
  {
    entity: 'service',
    body: async (turn) => ({
      ...(await anyService(turn)),
      encryptionRequired: turn === 0,
      configs: [await configId(turn)],
      roleAttributes: [`role${turn}`],
    }),
  },
  {
    entity: 'serviceEdgeRouterPolicy',
    body: async (turn) => ({
      ...(await policy(turn)),
      serviceRoles: roles(turn),
      edgeRouterRoles: roles(turn),
    }),
  },
  {
    entity: 'servicePolicy',
    body: async (turn) => ({
      ...(await policy(turn)),
      type: pick(turn, 'Bind', 'Dial'),
      identityRoles: roles(turn),
      serviceRoles: roles(turn),
      postureCheckRoles: roles(turn),
      expiresAt: `209${turn}-01-01T00:00:00Z`,
    }),
  },
  {
    entity: 'terminator',
    body: async (turn) => ({
      ...(await anyTerminator(turn)),
      identity: 'one',
      identitySecret: 'c2VjcmV0',
    }),
    stored: { service: [], router: ['routerId'] },
  },
  { entity: 'transitRouter', body: anyRouter },
]

/**
 * The API with operations to create and patch records of a kind; null for a kind without a PATCH.
 */
function apiOf({ operations }: Entity): EntityApi | null {
  for (const api of ['management', 'fabric'] as const) {
    if (operations[api]?.patch !== undefined) return api
  }
  return null
}

const patched = entities.filter((entity) => apiOf(entity) !== null)
const membersOf = (entity: Entity): string[] =>
  Object.keys(requestSchema(entity, 'patch')['properties'] as JsonObject)

/**
 * Paths of the members to patch: `a`, or `a.b` for a member of an object into which a PATCH is
 * merged.
 */
function pathsOf(entity: Entity, body: JsonObject): string[] {
  const settable = new Set(membersOf(entity))
  return Object.keys(body)
    .filter((name) => settable.has(name))
    .flatMap((name) => {
      const { mergedOnto = null } = entity.fields[name] ?? {}
      return mergedOnto === null ? [name] : leaves(name, body[name] as Json)
    })
}

function leaves(path: string, value: Json): string[] {
  if (!isObject(value)) return [path]
  return Object.entries(value).flatMap(([name, inner]) => leaves(`${path}.${name}`, inner))
}

function at(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((found, name) => (found as JsonObject | undefined)?.[name], value)
}

/** `{a: {b: value}}` for `a.b`. */
function onlyAt(path: string, value: Json): JsonObject {
  const [name = '', ...rest] = path.split('.')
  return { [name]: rest.length === 0 ? value : onlyAt(rest.join('.'), value) }
}

function without(value: JsonObject, path: string): JsonObject {
  const [name = '', ...rest] = path.split('.')
  const { [name]: inner, ...others } = value
  if (rest.length === 0 || !isObject(inner)) return others
  return { ...others, [name]: without(inner, rest.join('.')) }
}

const storedRecord = (entity: Entity, recordId: string): JsonObject => {
  const record = controller.state.get(entity.name, recordId)
  expect(record).toBeDefined()
  // Every write changes these two fields.
  const { revision, updatedAt, ...fields } = record as unknown as JsonObject
  return fields
}

test('the test data for PATCH has an example for every kind of record that a PATCH can change', () => {
  for (const entity of patched) {
    expect(
      examples.map((example) => example.entity),
      entity.name,
    ).toContain(entity.name)
  }
})

describe.each(examples.map((example) => [example.entity, example] as const))(
  'a PATCH of %s',
  (name, { body, stored = {}, always = {} }) => {
    const entity = findEntity(name)
    const api = apiOf(entity) ?? 'management'

    test('changes the field that its body contains, and no other field', async () => {
      const first = await body(0)
      const recordId = await create(api, entity.collection, first)
      const url = `${bases[api]}/${entity.collection}/${recordId}`
      const whole = storedRecord(entity, recordId)
      for (const [field, { settable, zero }] of Object.entries(entity.fields)) {
        if (settable !== 'always' || !(field in first)) continue
        expect(canonicalJson(whole[field] ?? null), `${field} is at its default`).not.toBe(
          canonicalJson(zero),
        )
      }
      for (const path of pathsOf(entity, first)) {
        const before = storedRecord(entity, recordId)
        const second = at(await body(1), path) as Json
        const reply = await root.call('PATCH', url, { ...always, ...onlyAt(path, second) })
        expect(reply.status, `${path}: ${reply.text}`).toBe(200)
        const isFixed = entity.fields[path]?.settable === 'create'
        const changes = isFixed ? [] : (stored[path] ?? [path])
        const after = storedRecord(entity, recordId)
        for (const changed of changes) expect(at(after, changed)).not.toEqual(at(before, changed))
        const rest = (record: JsonObject): JsonObject => changes.reduce(without, record)
        expect(rest(after), `after a PATCH of ${path}`).toEqual(rest(before))
        // Restores the value, so that the next patch also starts from non-default values.
        const back = at(await body(0), path) as Json
        const undone = await root.call('PATCH', url, { ...always, ...onlyAt(path, back) })
        expect(undone.status, `${path}: ${undone.text}`).toBe(200)
      }
    })
  },
)

test('the test data contains every field that a PATCH of any kind accepts', async () => {
  for (const entity of patched) {
    const bodies = await Promise.all(
      examples.filter((example) => example.entity === entity.name).map(({ body }) => body(0)),
    )
    const named = new Set(bodies.flatMap((body) => Object.keys(body)))
    expect(
      membersOf(entity).filter((member) => !named.has(member)),
      entity.name,
    ).toEqual([])
  }
})
