/**
 * Services, configs, policies and posture checks. Source: ziti 804f55abb,
 * controller/db/service_store.go:32-214, config_store.go:30-34, config_type_store.go:31-41,
 * service_policy_store.go:62-203, posture_check_store.go:31-44.
 */
import { terminatorStrategies } from '../../entities/kinds/service.ts'
import type { PostureCheck, PostureType } from '../../entities/kinds/posture-check.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { jsonDepth } from '../../lib/bounds/json-depth.ts'
import { seededConfigTypes } from '../../fsm/seed/seed-config-types.ts'
import { migrateLimits } from '../limits.ts'
import { choiceOrFirst, FLAT_SERVICES_VERSION, type StoreTable } from './conversion.ts'
import {
  baseRows,
  migratedUnchanged,
  converted,
  dropped,
  type FieldRows,
  linkRow,
} from './field-rows.ts'
import type { StoredRecord } from './stored-record.ts'

const edgeServiceRows: FieldRows = {
  roleAttributes: migratedUnchanged('texts'),
  configs: migratedUnchanged('texts'),
  encryptionRequired: migratedUnchanged('boolean'),
  dialIdentities: linkRow,
  bindIdentities: linkRow,
  edgeRouters: linkRow,
  identityServices: linkRow,
  servicePolicies: linkRow,
  serviceEdgeRouterPolicies: linkRow,
}

export const services: StoreTable = {
  store: 'services',
  kind: 'service',
  why: '',
  rows: {
    ...baseRows,
    ...edgeServiceRows,
    name: migratedUnchanged('text'),
    terminatorStrategy: migratedUnchanged('text'),
    maxIdleTime: converted('int64', 'from nanoseconds to milliseconds, rounded up'),
    isFabricOnly: migratedUnchanged('boolean', { since: '2.1' }),
    terminators: linkRow,
    edge: converted(
      'section',
      'its fields are those of the service; without it, the service is fabric-only',
      {
        fields: { ...edgeServiceRows, name: dropped('text', 'a copy of the name of the service') },
      },
    ),
  },
  convert: (record, conversion) => {
    const isFlat = conversion.version >= FLAT_SERVICES_VERSION
    const edge = isFlat ? record : record.section('edge')
    const isFabricOnly = isFlat ? record.flag('isFabricOnly') : edge === null
    if (isFabricOnly) conversion.fabricServices.add(record.id)
    conversion.put('service', record, {
      name: record.text('name') ?? '',
      encryptionRequired: edge?.flag('encryptionRequired', true) ?? true,
      terminatorStrategy: strategyOf(record),
      maxIdleTimeMillis: Math.ceil(Math.max(0, record.integer('maxIdleTime')) / 1e6),
      configs: edge?.texts('configs') ?? [],
      roleAttributes: edge?.texts('roleAttributes') ?? [],
      isFabricOnly,
    })
  },
}

function strategyOf(record: StoredRecord): (typeof terminatorStrategies)[number] {
  const text = record.text('terminatorStrategy') || 'smartrouting'
  const found = terminatorStrategies.find((one) => one === text)
  if (found === undefined) {
    record.note('decide', 'terminatorStrategy', 'it is unknown here and became smartrouting')
  }
  return found ?? 'smartrouting'
}

export const configs: StoreTable = {
  store: 'configs',
  kind: 'config',
  why: '',
  rows: {
    ...baseRows,
    name: migratedUnchanged('text'),
    type: migratedUnchanged('text'),
    data: migratedUnchanged('map'),
    services: linkRow,
    routers: linkRow,
    identityServices: linkRow,
  },
  convert: (record, conversion) => {
    conversion.put('config', record, {
      name: record.text('name') ?? '',
      configTypeId: record.text('type') ?? '',
      data: record.map('data'),
    })
  },
}

const seeds = new Map(seededConfigTypes.map((one) => [one.id, one]))

export const configTypes: StoreTable = {
  store: 'configTypes',
  kind: 'configType',
  why: '',
  rows: {
    ...baseRows,
    name: migratedUnchanged('text'),
    schema: converted(
      'text',
      'from JSON; the types that every network has keep the schema of this program',
    ),
    target: migratedUnchanged('text', { since: '2.1' }),
    configs: linkRow,
  },
  convert: (record, conversion) => {
    const seed = seeds.get(record.id)
    conversion.put('configType', record, {
      name: record.text('name') ?? '',
      target: seed?.target ?? choiceOrFirst(record, 'target', ['service', 'router', 'other']),
      schema: seed?.schema ?? schemaOf(record),
    })
  },
}

function schemaOf(record: StoredRecord): JsonObject {
  const text = record.text('schema') ?? ''
  if (text === '') return {}
  try {
    const schema: unknown = jsonDepth(text) > migrateLimits.valueDepthMax ? null : JSON.parse(text)
    if (schema !== null && typeof schema === 'object' && !Array.isArray(schema)) {
      return schema as JsonObject
    }
  } catch {
    // Reported below, like any string that is not a JSON object.
  }
  record.note('lost', 'schema', 'it is no JSON object, or is nested too deep')
  return {}
}

const semantics = ['AllOf', 'AnyOf'] as const

export const servicePolicies: StoreTable = {
  store: 'servicePolicies',
  kind: 'servicePolicy',
  why: '',
  rows: {
    ...baseRows,
    name: migratedUnchanged('text'),
    semantic: migratedUnchanged('text'),
    type: converted('int32', '1 is Dial, 2 is Bind'),
    identityRoles: migratedUnchanged('texts'),
    serviceRoles: migratedUnchanged('texts'),
    postureCheckRoles: migratedUnchanged('texts'),
    identities: linkRow,
    services: linkRow,
    postureChecks: linkRow,
  },
  convert: (record, conversion) => {
    const type = record.integer('type')
    if (type !== 1 && type !== 2) {
      record.note('lost', 'type', 'it is neither 1 for Dial nor 2 for Bind')
      return
    }
    conversion.put('servicePolicy', record, {
      name: record.text('name') ?? '',
      type: type === 1 ? 'Dial' : 'Bind',
      semantic: choiceOrFirst(record, 'semantic', semantics),
      identityRoles: record.texts('identityRoles'),
      serviceRoles: record.texts('serviceRoles'),
      postureCheckRoles: record.texts('postureCheckRoles'),
      isSystem: record.flag('isSystem'),
    })
  },
}

export const edgeRouterPolicies: StoreTable = {
  store: 'edgeRouterPolicies',
  kind: 'edgeRouterPolicy',
  why: '',
  rows: {
    ...baseRows,
    name: migratedUnchanged('text'),
    semantic: migratedUnchanged('text'),
    identityRoles: migratedUnchanged('texts'),
    edgeRouterRoles: migratedUnchanged('texts'),
    identities: linkRow,
    routers: linkRow,
  },
  convert: (record, conversion) => {
    conversion.put('edgeRouterPolicy', record, {
      name: record.text('name') ?? '',
      semantic: choiceOrFirst(record, 'semantic', semantics),
      identityRoles: record.texts('identityRoles'),
      edgeRouterRoles: record.texts('edgeRouterRoles'),
      isSystem: record.flag('isSystem'),
    })
  },
}

export const serviceEdgeRouterPolicies: StoreTable = {
  store: 'serviceEdgeRouterPolicies',
  kind: 'serviceEdgeRouterPolicy',
  why: '',
  rows: {
    ...baseRows,
    name: migratedUnchanged('text'),
    semantic: migratedUnchanged('text'),
    serviceRoles: migratedUnchanged('texts'),
    edgeRouterRoles: migratedUnchanged('texts'),
    services: linkRow,
    routers: linkRow,
  },
  convert: (record, conversion) => {
    conversion.put('serviceEdgeRouterPolicy', record, {
      name: record.text('name') ?? '',
      semantic: choiceOrFirst(record, 'semantic', semantics),
      serviceRoles: record.texts('serviceRoles'),
      edgeRouterRoles: record.texts('edgeRouterRoles'),
    })
  },
}

const postureTypes = ['OS', 'DOMAIN', 'MAC', 'PROCESS', 'PROCESS_MULTI', 'MFA'] as const

export const postureChecks: StoreTable = {
  store: 'postureChecks',
  kind: 'postureCheck',
  why: '',
  rows: {
    ...baseRows,
    name: migratedUnchanged('text'),
    typeId: migratedUnchanged('text'),
    version: dropped('int64', 'it is 1 for every check'),
    roleAttributes: migratedUnchanged('texts'),
    OS: migratedUnchanged('sections', {
      fields: { osType: migratedUnchanged('text'), osVersions: migratedUnchanged('texts') },
    }),
    DOMAIN: migratedUnchanged('section', { fields: { domains: migratedUnchanged('texts') } }),
    MAC: migratedUnchanged('section', { fields: { macAddresses: migratedUnchanged('texts') } }),
    PROCESS: migratedUnchanged('section', {
      fields: {
        os: migratedUnchanged('text'),
        path: migratedUnchanged('text'),
        hashes: migratedUnchanged('texts'),
        fingerprint: migratedUnchanged('text'),
      },
    }),
    PROCESS_MULTI: migratedUnchanged('section', {
      fields: {
        semantic: migratedUnchanged('text'),
        processes: migratedUnchanged('sections', {
          fields: {
            osType: migratedUnchanged('text'),
            path: migratedUnchanged('text'),
            hashes: migratedUnchanged('texts'),
            signerFingerprints: migratedUnchanged('texts'),
          },
        }),
      },
    }),
    MFA: migratedUnchanged('section', {
      fields: {
        timeoutSeconds: migratedUnchanged('int64'),
        promptOnWake: migratedUnchanged('boolean'),
        promptOnUnlock: migratedUnchanged('boolean'),
        ignoreLegacyEndpoints: migratedUnchanged('boolean'),
      },
    }),
    servicePolicies: linkRow,
    dialServices: linkRow,
    bindServices: linkRow,
  },
  convert: (record, conversion) => {
    const typeId = postureTypes.find((one) => one === record.text('typeId'))
    const fields = typeId === undefined ? null : postureFieldsOf(record, typeId)
    if (typeId === undefined || fields === null) {
      record.note('lost', 'typeId', 'the check has no known type, or not its fields')
      return
    }
    conversion.put('postureCheck', record, {
      name: record.text('name') ?? '',
      typeId,
      roleAttributes: record.texts('roleAttributes'),
      ...fields,
    })
  },
}

function postureFieldsOf(record: StoredRecord, type: PostureType): Partial<PostureCheck> | null {
  if (type === 'OS') {
    const operatingSystems = record.sections('OS').map((one) => ({
      type: one.text('osType') ?? '',
      versions: one.texts('osVersions'),
    }))
    return { operatingSystems }
  }
  const section = record.section(type)
  if (section === null) return null
  switch (type) {
    case 'DOMAIN':
      return { domains: section.texts('domains') }
    case 'MAC':
      return { macAddresses: section.texts('macAddresses') }
    case 'PROCESS':
      return {
        process: {
          osType: section.text('os') ?? '',
          path: section.text('path') ?? '',
          hashes: section.texts('hashes'),
          signerFingerprint: section.text('fingerprint') ?? '',
        },
      }
    case 'PROCESS_MULTI':
      return {
        semantic: choiceOrFirst(section, 'semantic', semantics),
        processes: section.sections('processes').map((one) => ({
          osType: one.text('osType') ?? '',
          path: one.text('path') ?? '',
          hashes: one.texts('hashes'),
          signerFingerprints: one.texts('signerFingerprints'),
        })),
      }
    case 'MFA':
      return {
        timeoutSeconds: section.integer('timeoutSeconds', -1),
        promptOnWake: section.flag('promptOnWake'),
        promptOnUnlock: section.flag('promptOnUnlock'),
        ignoreLegacyEndpoints: section.flag('ignoreLegacyEndpoints'),
      }
  }
}
