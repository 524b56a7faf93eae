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
import { readChoiceOrFirst, FLAT_SERVICES_VERSION, type StoreTable } from './conversion.ts'
import {
  baseFieldRules,
  unchangedFieldRule,
  convertedFieldRule,
  droppedFieldRule,
  type StoredFieldRules,
  linkFieldRule,
} from './stored-field-rules.ts'
import type { StoredRecord } from './stored-record.ts'

const edgeServiceRows: StoredFieldRules = {
  roleAttributes: unchangedFieldRule('texts'),
  configs: unchangedFieldRule('texts'),
  encryptionRequired: unchangedFieldRule('boolean'),
  dialIdentities: linkFieldRule,
  bindIdentities: linkFieldRule,
  edgeRouters: linkFieldRule,
  identityServices: linkFieldRule,
  servicePolicies: linkFieldRule,
  serviceEdgeRouterPolicies: linkFieldRule,
}

export const serviceStore: StoreTable = {
  store: 'services',
  kind: 'service',
  why: '',
  rows: {
    ...baseFieldRules,
    ...edgeServiceRows,
    name: unchangedFieldRule('text'),
    terminatorStrategy: unchangedFieldRule('text'),
    maxIdleTime: convertedFieldRule('int64', 'from nanoseconds to milliseconds, rounded up'),
    isFabricOnly: unchangedFieldRule('boolean', { since: '2.1' }),
    terminators: linkFieldRule,
    edge: convertedFieldRule(
      'section',
      'its fields are those of the service; without it, the service is fabric-only',
      {
        fields: {
          ...edgeServiceRows,
          name: droppedFieldRule('text', 'a copy of the name of the service'),
        },
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

export const configStore: StoreTable = {
  store: 'configs',
  kind: 'config',
  why: '',
  rows: {
    ...baseFieldRules,
    name: unchangedFieldRule('text'),
    type: unchangedFieldRule('text'),
    data: unchangedFieldRule('map'),
    services: linkFieldRule,
    routers: linkFieldRule,
    identityServices: linkFieldRule,
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

export const configTypeStore: StoreTable = {
  store: 'configTypes',
  kind: 'configType',
  why: '',
  rows: {
    ...baseFieldRules,
    name: unchangedFieldRule('text'),
    schema: convertedFieldRule(
      'text',
      'from JSON; the types that every network has keep the schema of this program',
    ),
    target: unchangedFieldRule('text', { since: '2.1' }),
    configs: linkFieldRule,
  },
  convert: (record, conversion) => {
    const seed = seeds.get(record.id)
    conversion.put('configType', record, {
      name: record.text('name') ?? '',
      target: seed?.target ?? readChoiceOrFirst(record, 'target', ['service', 'router', 'other']),
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
    // The check below reports this string, like any string that is not a JSON object.
  }
  record.note('lost', 'schema', 'it is no JSON object, or is nested too deep')
  return {}
}

const semantics = ['AllOf', 'AnyOf'] as const

export const servicePolicyStore: StoreTable = {
  store: 'servicePolicies',
  kind: 'servicePolicy',
  why: '',
  rows: {
    ...baseFieldRules,
    name: unchangedFieldRule('text'),
    semantic: unchangedFieldRule('text'),
    type: convertedFieldRule('int32', '1 is Dial, 2 is Bind'),
    identityRoles: unchangedFieldRule('texts'),
    serviceRoles: unchangedFieldRule('texts'),
    postureCheckRoles: unchangedFieldRule('texts'),
    identities: linkFieldRule,
    services: linkFieldRule,
    postureChecks: linkFieldRule,
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
      semantic: readChoiceOrFirst(record, 'semantic', semantics),
      identityRoles: record.texts('identityRoles'),
      serviceRoles: record.texts('serviceRoles'),
      postureCheckRoles: record.texts('postureCheckRoles'),
      isSystem: record.flag('isSystem'),
    })
  },
}

export const edgeRouterPolicyStore: StoreTable = {
  store: 'edgeRouterPolicies',
  kind: 'edgeRouterPolicy',
  why: '',
  rows: {
    ...baseFieldRules,
    name: unchangedFieldRule('text'),
    semantic: unchangedFieldRule('text'),
    identityRoles: unchangedFieldRule('texts'),
    edgeRouterRoles: unchangedFieldRule('texts'),
    identities: linkFieldRule,
    routers: linkFieldRule,
  },
  convert: (record, conversion) => {
    conversion.put('edgeRouterPolicy', record, {
      name: record.text('name') ?? '',
      semantic: readChoiceOrFirst(record, 'semantic', semantics),
      identityRoles: record.texts('identityRoles'),
      edgeRouterRoles: record.texts('edgeRouterRoles'),
      isSystem: record.flag('isSystem'),
    })
  },
}

export const serviceEdgeRouterPolicyStore: StoreTable = {
  store: 'serviceEdgeRouterPolicies',
  kind: 'serviceEdgeRouterPolicy',
  why: '',
  rows: {
    ...baseFieldRules,
    name: unchangedFieldRule('text'),
    semantic: unchangedFieldRule('text'),
    serviceRoles: unchangedFieldRule('texts'),
    edgeRouterRoles: unchangedFieldRule('texts'),
    services: linkFieldRule,
    routers: linkFieldRule,
  },
  convert: (record, conversion) => {
    conversion.put('serviceEdgeRouterPolicy', record, {
      name: record.text('name') ?? '',
      semantic: readChoiceOrFirst(record, 'semantic', semantics),
      serviceRoles: record.texts('serviceRoles'),
      edgeRouterRoles: record.texts('edgeRouterRoles'),
    })
  },
}

const postureTypes = ['OS', 'DOMAIN', 'MAC', 'PROCESS', 'PROCESS_MULTI', 'MFA'] as const

export const postureCheckStore: StoreTable = {
  store: 'postureChecks',
  kind: 'postureCheck',
  why: '',
  rows: {
    ...baseFieldRules,
    name: unchangedFieldRule('text'),
    typeId: unchangedFieldRule('text'),
    version: droppedFieldRule('int64', 'it is 1 for every check'),
    roleAttributes: unchangedFieldRule('texts'),
    OS: unchangedFieldRule('sections', {
      fields: { osType: unchangedFieldRule('text'), osVersions: unchangedFieldRule('texts') },
    }),
    DOMAIN: unchangedFieldRule('section', { fields: { domains: unchangedFieldRule('texts') } }),
    MAC: unchangedFieldRule('section', { fields: { macAddresses: unchangedFieldRule('texts') } }),
    PROCESS: unchangedFieldRule('section', {
      fields: {
        os: unchangedFieldRule('text'),
        path: unchangedFieldRule('text'),
        hashes: unchangedFieldRule('texts'),
        fingerprint: unchangedFieldRule('text'),
      },
    }),
    PROCESS_MULTI: unchangedFieldRule('section', {
      fields: {
        semantic: unchangedFieldRule('text'),
        processes: unchangedFieldRule('sections', {
          fields: {
            osType: unchangedFieldRule('text'),
            path: unchangedFieldRule('text'),
            hashes: unchangedFieldRule('texts'),
            signerFingerprints: unchangedFieldRule('texts'),
          },
        }),
      },
    }),
    MFA: unchangedFieldRule('section', {
      fields: {
        timeoutSeconds: unchangedFieldRule('int64'),
        promptOnWake: unchangedFieldRule('boolean'),
        promptOnUnlock: unchangedFieldRule('boolean'),
        ignoreLegacyEndpoints: unchangedFieldRule('boolean'),
      },
    }),
    servicePolicies: linkFieldRule,
    dialServices: linkFieldRule,
    bindServices: linkFieldRule,
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
        semantic: readChoiceOrFirst(section, 'semantic', semantics),
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
