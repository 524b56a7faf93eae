import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { bodyMemberForAllWrites } from '../body-members.ts'
import { managementCrudPermissions } from '../crud.ts'
import { defineEntity, type EntityOf } from '../define-entity.ts'
import {
  roleAttributesField,
  booleanField,
  choiceField,
  constantField,
  integerField,
  nameField,
  objectField,
  objectListField,
  textListField,
} from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'
import {
  processListSchema,
  operatingSystemSchema,
  runningProcessSchema,
} from '../parts/posture-check-subjects.ts'

const postureTypes = ['OS', 'DOMAIN', 'MAC', 'PROCESS', 'PROCESS_MULTI', 'MFA'] as const
export type PostureType = (typeof postureTypes)[number]

/** The required and the optional fields of each posture check type. */
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
  operations: { management: managementCrudPermissions('posture-check') },
  refusals: { delete: [403, 409] },
  fields: markShownInEvents({
    name: nameField(),
    typeId: choiceField(postureTypes, { required: true, settable: 'create' }),
    roleAttributes: roleAttributesField(),
    version: constantField(1, { type: 'integer' }),
    operatingSystems: objectListField(operatingSystemSchema, {
      ...of('OS'),
      itemsMin: 1,
      itemsMax: 64,
    }),
    domains: textListField({ ...of('DOMAIN'), itemsMin: 1 }),
    /** Lowercase hex without separators. */
    macAddresses: textListField({ ...of('MAC'), itemsMin: 1 }),
    process: objectField<JsonObject | null>(runningProcessSchema, null, {
      ...of('PROCESS'),
      mergedOnto: { hashes: [], signerFingerprint: '' },
    }),
    processes: objectListField(processListSchema, {
      ...of('PROCESS_MULTI'),
      itemsMin: 1,
      itemsMax: 256,
    }),
    semantic: choiceField(['AllOf', 'AnyOf'], of('PROCESS_MULTI')),
    /** Time after which a new code is required; -1 means never. */
    timeoutSeconds: integerField({ ...of('MFA'), minimum: -1 }),
    promptOnWake: booleanField(of('MFA')),
    promptOnUnlock: booleanField(of('MFA')),
    ignoreLegacyEndpoints: booleanField(of('MFA')),
  }),
  body: {
    typeId: bodyMemberForAllWrites({ type: 'string', enum: postureTypes }, 'create', 'patch'),
    timeoutSeconds: bodyMemberForAllWrites({ type: 'integer', maximum: Number.MAX_SAFE_INTEGER }),
  },
  indexes: ['roleAttributes'],
  symbols: ['name', 'typeId', 'roleAttributes', 'promptOnWake', 'promptOnUnlock'],
  hasRoleFilter: true,
})

export type PostureCheck = EntityOf<typeof postureCheck>
