import { crud } from './crud.ts'
import { defineEntity } from './define.ts'
import type { EntityOf } from './define.ts'
import { attributes, choice, empty, nameText } from './fields.ts'

export const postureCheckTypes = ['OS', 'DOMAIN', 'MAC', 'PROCESS', 'PROCESS_MULTI', 'MFA'] as const

/** What a client's machine must satisfy before a service policy grants anything. */
export const postureCheck = defineEntity({
  name: 'postureCheck',
  plural: 'postureChecks',
  operations: { management: crud('posture-check') },
  fields: {
    name: nameText(),
    typeId: choice(postureCheckTypes, { required: true, settable: 'create' }),
    roleAttributes: attributes(),
    version: empty(1, { type: 'integer' }),
  },
  indexes: ['roleAttributes'],
  symbols: ['name', 'typeId', 'roleAttributes'],
  hasRoleFilter: true,
})

export type PostureCheck = EntityOf<typeof postureCheck>
