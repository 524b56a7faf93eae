import type { Json, JsonObject } from '../lib/canonical-json.ts'
import { crud } from './crud.ts'
import { defineEntity } from './define.ts'
import type { EntityOf } from './define.ts'
import {
  attributes,
  boolean,
  choice,
  empty,
  integer,
  nameText,
  object,
  objects,
  texts,
} from './fields.ts'

export const postureTypes = ['OS', 'DOMAIN', 'MAC', 'PROCESS', 'PROCESS_MULTI', 'MFA'] as const
export type PostureType = (typeof postureTypes)[number]

/** The fields that each type has, those it can not be without first. */
export const postureFields: Readonly<
  Record<
    PostureType,
    { readonly required: readonly string[]; readonly optional: readonly string[] }
  >
> = {
  OS: { required: ['operatingSystems'], optional: [] },
  DOMAIN: { required: ['domains'], optional: [] },
  MAC: { required: ['macAddresses'], optional: [] },
  PROCESS: { required: ['process'], optional: [] },
  PROCESS_MULTI: { required: ['processes', 'semantic'], optional: [] },
  MFA: {
    required: [],
    optional: ['ignoreLegacyEndpoints', 'promptOnUnlock', 'promptOnWake', 'timeoutSeconds'],
  },
}

const osTypes = ['Windows', 'WindowsServer', 'Android', 'iOS', 'Linux', 'macOS'] as const
const osType = { type: 'string', enum: osTypes } as const
const bounded = { type: 'string', maxLength: 512 } as const
const manyBounded = { type: 'array', maxItems: 1024, items: bounded } as const
const path = { type: 'string', maxLength: 4096 } as const

export const operatingSystem = {
  type: 'object',
  properties: { type: osType, versions: { type: 'array', maxItems: 256, items: bounded } },
  required: ['type', 'versions'],
} as const
const process = {
  type: 'object',
  properties: { hashes: manyBounded, osType, path, signerFingerprint: bounded },
  required: ['osType', 'path'],
} as const
const oneOfProcesses = {
  type: 'object',
  properties: { hashes: manyBounded, osType, path, signerFingerprints: manyBounded },
  required: ['osType', 'path'],
} as const

const of = (...types: readonly PostureType[]) => ({ shown: { field: 'typeId', is: types } })

/** What a client's machine must satisfy before a service policy grants anything. Its type never changes. */
export const postureCheck = defineEntity({
  name: 'postureCheck',
  plural: 'postureChecks',
  operations: { management: crud('posture-check') },
  refusals: { delete: [403] },
  fields: {
    name: nameText(),
    typeId: choice(postureTypes, { required: true, settable: 'create' }),
    roleAttributes: attributes(),
    version: empty(1, { type: 'integer' }),
    operatingSystems: objects(operatingSystem, { ...of('OS'), itemsMin: 1, itemsMax: 64 }),
    domains: texts({ ...of('DOMAIN'), itemsMin: 1 }),
    /** Lower-case hex, nothing between the digits. */
    macAddresses: texts({ ...of('MAC'), itemsMin: 1 }),
    process: object<Json & (JsonObject | null)>(process, null, of('PROCESS')),
    processes: objects(oneOfProcesses, { ...of('PROCESS_MULTI'), itemsMin: 1, itemsMax: 256 }),
    semantic: choice(['AllOf', 'AnyOf'], of('PROCESS_MULTI')),
    /** -1: a code that was given once does. */
    timeoutSeconds: integer({ ...of('MFA'), minimum: -1 }),
    promptOnWake: boolean(of('MFA')),
    promptOnUnlock: boolean(of('MFA')),
    ignoreLegacyEndpoints: boolean(of('MFA')),
  },
  body: {
    typeId: {
      schema: { type: 'string', enum: postureTypes },
      in: ['create', 'replace', 'patch'],
      requiredIn: ['create', 'patch'],
    },
    timeoutSeconds: {
      schema: { type: 'integer', maximum: Number.MAX_SAFE_INTEGER },
      in: ['create', 'replace', 'patch'],
      requiredIn: [],
    },
  },
  indexes: ['roleAttributes'],
  symbols: ['name', 'typeId', 'roleAttributes', 'promptOnWake', 'promptOnUnlock'],
  hasRoleFilter: true,
})

export type PostureCheck = EntityOf<typeof postureCheck>
