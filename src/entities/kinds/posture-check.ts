import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { bodyMemberOfAllWrites } from '../body-members.ts'
import { crud } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define.ts'
import {
  attributes,
  boolean,
  choice,
  constant,
  integer,
  nameText,
  object,
  objects,
  texts,
} from '../fields.ts'
import { shownInEvents } from '../published.ts'
import { oneOfProcesses, operatingSystem, runningProcess } from '../parts/posture-check-subjects.ts'

const postureTypes = ['OS', 'DOMAIN', 'MAC', 'PROCESS', 'PROCESS_MULTI', 'MFA'] as const
export type PostureType = (typeof postureTypes)[number]

/** Fields of each posture check type; the required fields are first. */
export const postureFields: Readonly<
  Record<PostureType, Readonly<Record<'required' | 'optional', readonly (keyof PostureCheck)[]>>>
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

const of = (...types: readonly PostureType[]) => ({ shown: { field: 'typeId', is: types } })

/**
 * A check that a device must pass before a service policy grants access; the type of a check never
 * changes.
 */
export const postureCheck = defineEntity({
  name: 'postureCheck',
  plural: 'postureChecks',
  isPublished: true,
  operations: { management: crud('posture-check') },
  refusals: { delete: [403, 409] },
  fields: shownInEvents({
    name: nameText(),
    typeId: choice(postureTypes, { required: true, settable: 'create' }),
    roleAttributes: attributes(),
    version: constant(1, { type: 'integer' }),
    operatingSystems: objects(operatingSystem, { ...of('OS'), itemsMin: 1, itemsMax: 64 }),
    domains: texts({ ...of('DOMAIN'), itemsMin: 1 }),
    /** Lowercase hex without separators. */
    macAddresses: texts({ ...of('MAC'), itemsMin: 1 }),
    process: object<JsonObject | null>(runningProcess, null, {
      ...of('PROCESS'),
      mergedOnto: { hashes: [], signerFingerprint: '' },
    }),
    processes: objects(oneOfProcesses, { ...of('PROCESS_MULTI'), itemsMin: 1, itemsMax: 256 }),
    semantic: choice(['AllOf', 'AnyOf'], of('PROCESS_MULTI')),
    /** Time after which a new code is required; -1 means never. */
    timeoutSeconds: integer({ ...of('MFA'), minimum: -1 }),
    promptOnWake: boolean(of('MFA')),
    promptOnUnlock: boolean(of('MFA')),
    ignoreLegacyEndpoints: boolean(of('MFA')),
  }),
  body: {
    typeId: bodyMemberOfAllWrites({ type: 'string', enum: postureTypes }, 'create', 'patch'),
    timeoutSeconds: bodyMemberOfAllWrites({ type: 'integer', maximum: Number.MAX_SAFE_INTEGER }),
  },
  indexes: ['roleAttributes'],
  symbols: ['name', 'typeId', 'roleAttributes', 'promptOnWake', 'promptOnUnlock'],
  hasRoleFilter: true,
})

export type PostureCheck = EntityOf<typeof postureCheck>
