import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import type { KindName } from '../../src/entities/kind-records.ts'
import { normalizeBody } from '../../src/entities/normalize-body.ts'
import { entityOperations } from '../../src/entities/operations.ts'
import { entities, entitiesByName, findEntity } from '../../src/entities/registry.ts'
import { detailSchema, requestSchema } from '../../src/entities/schema.ts'
import { StateReader } from '../../src/fsm/state-reader.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import { Problem } from '../../src/lib/problems.ts'
import { contractedApis, readContract } from '../contract/facts.ts'
import { formedState, identity, policy, service, startMs } from '../fsm/support/log.ts'

const modes = ['create', 'replace', 'patch'] as const

function newAjv(): Ajv2020 {
  const ajv = new Ajv2020({ allowUnionTypes: true, strictRequired: false })
  formats.default(ajv)
  return ajv
}

describe('every entity descriptor', () => {
  test.each(entities.map((entity) => [entity.name, entity] as const))(
    'is consistent: %s',
    (_name, entity) => {
      const names = entity.symbols.map(({ name }) => name)
      expect(new Set(names).size).toBe(names.length)
      for (const name of names) expect(name).toMatch(/^[A-Za-z][A-Za-z_]*(\.[A-Za-z][A-Za-z_-]*)*$/)
      for (const { of, through } of entity.symbols) {
        const there = through === null ? null : findEntity(of ?? '').symbols
        const found = there?.find((symbol) => symbol.name === through)
        if (through !== null) expect(found?.type ?? 'stringSet', through).not.toBe('stringSet')
      }
      for (const { by, when } of entity.links) {
        if (by !== null) expect(Object.keys(entity.fields)).toContain(by.field)
        if (when !== null) expect(Object.keys(entity.fields)).toContain(when.field)
      }
      for (const { shown } of Object.values(entity.fields)) {
        if (typeof shown !== 'string') expect(Object.keys(entity.fields)).toContain(shown.field)
      }
      for (const rule of Object.values(entity.lists)) {
        expect(entitiesByName.has(rule.of)).toBe(true)
        if (rule.through === 'roles') expect(entity.fields[rule.by ?? '']?.kind).toBe('roleList')
        if (rule.through === 'policies') {
          expect(findEntity(rule.of).fields[rule.by ?? '']?.reference?.to).toBe(entity.name)
        }
      }
      for (const { computed } of Object.values(entity.fields)) {
        if (computed === null) continue
        if (computed.from === 'entityRef' || computed.from === 'rolesDisplay') {
          expect(entity.fields[computed.by]?.reference?.to).toBe(computed.to)
        }
        if (computed.from === 'fieldOf') {
          expect(entity.fields[computed.by]?.reference?.to).toBe(computed.to)
          expect(Object.keys(findEntity(computed.to).fields)).toContain(computed.field)
        }
        if (computed.from === 'isReferenced' || computed.from === 'byKey') {
          expect(findEntity(computed.of).indexes).toContain(computed.by)
        }
      }
      for (const guarded of [entity.refuse.update, entity.refuse.delete]) {
        for (const field of Object.keys(guarded)) expect(entity.fields[field]?.kind).toBe('boolean')
      }
      if (entity.hasRoleFilter) expect(entity.indexes).toContain('roleAttributes')
    },
  )

  test.each(entities.map((entity) => [entity.name, entity] as const))(
    'has schemas that can be compiled and contain only JSON values: %s',
    (_name, entity) => {
      const ajv = newAjv()
      for (const schema of [
        ...modes.map((mode) => requestSchema(entity, mode)),
        detailSchema(entity),
      ]) {
        ajv.compile(schema)
        expect(JSON.parse(JSON.stringify(schema))).toEqual(schema)
      }
    },
  )

  test('of services, service policies, auth policies, identity types, authenticators and API sessions has the link keys of the OpenZiti API', () => {
    const keys = Object.fromEntries(
      entities.map((entity) => [entity.collection, entity.links.map(({ key }) => key)]),
    )
    expect(keys).toMatchObject({
      services: ['service-edge-router-policies', 'service-policies', 'terminators', 'configs'],
      'service-policies': ['services', 'identities', 'posture-checks'],
      'auth-policies': [],
      'identity-types': [],
      authenticators: ['identities'],
      'api-sessions': ['sessions'],
    })
  })

  test('has operation ids that are unique within each API', () => {
    for (const api of ['client', 'management', 'fabric']) {
      const ids = entities.flatMap((entity) =>
        entityOperations(entity)
          .filter((operation) => operation.api === api)
          .map(({ operationId }) => operationId),
      )
      expect(new Set(ids).size).toBe(ids.length)
    }
  })
})

describe('as in OpenZiti’s API specification,', () => {
  const contracts = Object.fromEntries(contractedApis.map((api) => [api, readContract(api)]))
  const operations = entities
    .flatMap((entity) => entityOperations(entity))
    .filter(({ api }) => api !== 'fabric')

  test.each(
    operations.map((operation) => [operation.api, operation.operationId, operation] as const),
  )(
    'the %s API has the operation %s with the same method and path, and with all of its body fields and response statuses',
    (api, operationId, operation) => {
      const contract = contracts[api]
      const theirs = contract?.operations.find((other) => other.operationId === operationId)
      expect(theirs).toMatchObject({ method: operation.method, path: operation.path })
      const body = contract?.shapes.get(theirs?.body?.shape ?? '') ?? []
      const ours = operation.request?.schema
      expect(Object.keys((ours?.['properties'] ?? {}) as JsonObject)).toEqual(
        expect.arrayContaining(body.map(({ name }) => name)),
      )
      expect(ours?.['required'] ?? []).toEqual(
        expect.arrayContaining(body.filter(({ isRequired }) => isRequired).map(({ name }) => name)),
      )
      const statuses = [operation.success, ...operation.refusals].map(String)
      expect(statuses).toEqual(expect.arrayContaining([...(theirs?.statuses ?? [])]))
    },
  )

  test.each([
    ['service', 'serviceDetail'],
    ['servicePolicy', 'servicePolicyDetail'],
    ['identity', 'identityDetail'],
    ['identityType', 'identityTypeDetail'],
    ['authPolicy', 'authPolicyDetail'],
    ['authenticator', 'authenticatorDetail'],
    ['apiSession', 'apiSessionDetail'],
    ['config', 'configDetail'],
    ['configType', 'configTypeDetail'],
    ['edgeRouter', 'edgeRouterDetail'],
    ['router', 'routerDetail'],
    ['transitRouter', 'routerDetail'],
    ['terminator', 'terminatorDetail'],
    ['enrollment', 'enrollmentDetail'],
    ['externalJwtSigner', 'externalJwtSignerDetail'],
    ['ca', 'caDetail'],
    ['postureCheckType', 'postureCheckTypeDetail'],
    ['revocation', 'revocationDetail'],
  ])('the detail of %s has every field of %s', (name, definition) => {
    const theirs = contracts['management']?.shapes.get(definition) ?? []
    expect(theirs.length).toBeGreaterThan(4)
    const names = theirs.map((field) => field.name)
    const ours = Object.keys(detailSchema(findEntity(name))['properties'] as JsonObject)
    expect(ours).toEqual(
      expect.arrayContaining([...names, '_links', 'id', 'tags', 'createdAt', 'updatedAt']),
    )
  })
})

test('the details of records match the schemas that the API serves for them', () => {
  const { state, log } = formedState()
  log.create('service', 's1', { ...service('one', ['x']), tags: { a: null, b: 1, c: true } })
  log.create('identity', 'i1', {
    ...identity('ann'),
    externalId: 'e',
    serviceHostingCosts: { s1: 4 },
  })
  log.create('servicePolicy', 'p1', policy('p', ['@admin', '#a'], ['#all']))
  log.logIn('sess', 'admin', 'admin-updb', '{"os":"linux"}')
  log.create('config', 'c1', { name: 'c', configTypeId: 'host.v2', data: { terminators: [] } })
  log.serviceConfigs('associate', 'i1', [['s1', 'c1']])
  const reader = new StateReader(state, { nowMs: () => startMs, monotonicMs: () => 0 })
  const ajv = newAjv()
  let shown = 0
  for (const entity of entities) {
    const check = ajv.compile(detailSchema(entity))
    for (const { record } of state.table(entity.name).rows.values()) {
      const detail = reader.detail(entity.name, record, 'admin')
      expect(check(detail), JSON.stringify(check.errors)).toBe(true)
      expect(JSON.stringify(detail)).not.toContain('argon2id')
      shown += 1
    }
  }
  expect(shown).toBe(28)
})

test('the details of a service contain the permissions of the caller, the details of an identity contain its log-in methods and status, and both contain links to related records', () => {
  const { state, log } = formedState()
  log.create('service', 's1', service('one'))
  log.create('servicePolicy', 'p1', policy('p', ['@admin'], ['@s1']))
  log.create('servicePolicy', 'p2', policy('q', ['@admin'], ['@s1'], { type: 'Bind' }))
  const nowMs = startMs + 1
  const reader = new StateReader(state, { nowMs: () => nowMs, monotonicMs: () => 0 })
  const detail = (entity: KindName, id: string, caller: string): JsonObject => {
    const record = state.get(entity, id)
    if (record === undefined) throw new Error('no record')
    return reader.detail(entity, record, caller)
  }
  expect(detail('service', 's1', 'admin')).toMatchObject({
    permissions: ['Bind', 'Dial'],
    config: {},
  })
  expect(detail('service', 's1', 'nobody')).toMatchObject({
    permissions: ['Invalid'],
    postureQueries: [
      {
        policyId: 'dummy invalid policy: no posture checks defined',
        policyType: 'Invalid',
        isPassing: true,
      },
    ],
  })
  expect(detail('service', 's1', 'admin')['_links']).toMatchObject({
    self: { href: './services/s1' },
    'service-policies': { href: './services/s1/service-policies' },
  })
  expect(detail('identity', 'admin', 'admin')).toMatchObject({
    _links: { 'auth-policies': { href: './auth-policies/default' } },
    authenticators: { updb: { id: 'admin-updb', username: 'Default Admin' } },
    disabled: false,
    hasApiSession: false,
    type: { entity: 'identity-types', id: 'Default', name: 'Default' },
    authPolicy: { entity: 'auth-policies', id: 'default' },
    externalId: null,
    roleAttributes: [],
    createdAt: new Date(startMs).toISOString(),
  })
  log.logIn('sess')
  expect(detail('identity', 'admin', 'admin')['hasApiSession']).toBe(true)
  const admin = { ...state.get('identity', 'admin'), id: 'admin' }
  state.put('identity', { ...admin, disabledAt: startMs, disabledUntil: startMs + 1 })
  expect(detail('identity', 'admin', 'admin')).toMatchObject({ disabled: false })
  state.put('identity', { ...admin, disabledAt: startMs, disabledUntil: null })
  expect(detail('identity', 'admin', 'admin')).toMatchObject({
    disabled: true,
    disabledAt: new Date(startMs).toISOString(),
  })
})

describe('the parser of request bodies', () => {
  const services = findEntity('service')
  const policies = findEntity('servicePolicy')

  test('replaces absent and null members by zero values for create and replace', () => {
    const zero = {
      configs: [],
      maxIdleTimeMillis: 0,
      name: 'n',
      roleAttributes: [],
      tags: {},
      terminatorStrategy: 'smartrouting',
    }
    const body = { name: 'n', encryptionRequired: true, tags: null, terminatorStrategy: '' }
    expect(normalizeBody(services, 'create', body).fields).toEqual({
      ...zero,
      encryptionRequired: true,
    })
    expect(normalizeBody(services, 'replace', body)).toEqual({
      fields: zero,
      ignoredFields: ['encryptionRequired'],
    })
  })

  test('changes in a patch only members that are present and not null, and replaces maps completely', () => {
    const patch = (body: JsonObject): JsonObject => normalizeBody(services, 'patch', body).fields
    expect(patch({})).toEqual({})
    expect(patch({ name: null, configs: null, tags: null })).toEqual({})
    expect(patch({ configs: [], tags: {} })).toEqual({ configs: [], tags: {} })
    expect(patch({ tags: { a: null } })).toEqual({})
    expect(patch({ tags: { a: null, b: 'x' } })).toEqual({ tags: { a: null, b: 'x' } })
    expect(
      normalizeBody(findEntity('identity'), 'patch', { externalId: '', authPolicyId: '' }).fields,
    ).toEqual({
      externalId: null,
      authPolicyId: 'default',
    })
  })

  test('sorts roles and role attributes, and removes duplicates', () => {
    const roles = ['#b', '@z', '#a', '#b']
    expect(normalizeBody(policies, 'patch', { serviceRoles: roles }).fields).toEqual({
      serviceRoles: ['#a', '#b', '@z'],
    })
    expect(
      normalizeBody(services, 'patch', { roleAttributes: ['b', 'B', 'a', 'b'] }).fields,
    ).toEqual({
      roleAttributes: ['B', 'a', 'b'],
    })
  })

  test('ignores and lists unknown and read-only members, up to a limit', () => {
    const body = JSON.parse(
      '{"id":"x","permissions":[],"constructor":1,"__proto__":{"a":1},"semantc":2}',
    ) as JsonObject
    expect(normalizeBody(services, 'patch', body)).toEqual({
      fields: {},
      ignoredFields: ['id', 'permissions', 'constructor', '__proto__', 'semantc'],
    })
    const many = Object.fromEntries(
      Array.from({ length: 500 }, (_, i) => [`${'x'.repeat(500)}${i}`, 1]),
    )
    const { ignoredFields } = normalizeBody(services, 'patch', many)
    expect(ignoredFields).toHaveLength(64)
    expect(ignoredFields[0]).toHaveLength(128)
  })

  test.each([
    ['create', { name: '' }, 'name', 'name is required'],
    ['patch', { name: '' }, 'name', 'name is required'],
    [
      'patch',
      { roleAttributes: ['ok', '#x'] },
      'roleAttributes',
      'role attributes may not be prefixed with #',
    ],
    [
      'patch',
      { roleAttributes: ['@x'] },
      'roleAttributes',
      'role attributes may not be prefixed with @',
    ],
    [
      'patch',
      { tags: { a: [] } },
      'tags',
      'tags values must be a string, a number, a boolean or null',
    ],
  ] as const)('refuses the body of a %s that contains %j', (mode, body, field, reason) => {
    let problem: unknown = null
    try {
      normalizeBody(services, mode, body)
    } catch (error) {
      problem = error
    }
    expect(problem).toBeInstanceOf(Problem)
    expect(problem).toMatchObject({ code: 'COULD_NOT_VALIDATE', fault: { field, reason } })
  })
})

test('the schema of a request body refuses wrong types and values outside its limits, and accepts unknown members, and null for members that are not required', () => {
  const ajv = newAjv()
  const create = ajv.compile(requestSchema(findEntity('service'), 'create'))
  const patch = ajv.compile(requestSchema(findEntity('servicePolicy'), 'patch'))
  expect(create({ name: 'n', encryptionRequired: true, tags: null, more: 1 })).toBe(true)
  expect(create({ name: 'n' })).toBe(false)
  expect(create({ name: null, encryptionRequired: true })).toBe(false)
  expect(create({ name: 7, encryptionRequired: true })).toBe(false)
  expect(create({ name: 'n', encryptionRequired: 'true' })).toBe(false)
  expect(create({ name: 'n', encryptionRequired: true, maxIdleTimeMillis: -1 })).toBe(false)
  expect(create({ name: 'n', encryptionRequired: true, maxIdleTimeMillis: 1.5 })).toBe(false)
  expect(create({ name: 'n', encryptionRequired: true, terminatorStrategy: 'x' })).toBe(false)
  expect(create({ name: 'n'.repeat(513), encryptionRequired: true })).toBe(false)
  expect(patch({ semantic: null, type: 'Bind' })).toBe(true)
  expect(patch({ semantic: 'anyof' })).toBe(false)
  expect(patch({ serviceRoles: [1] })).toBe(false)
})
