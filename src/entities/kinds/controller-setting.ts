import type { JsonObject } from '../../lib/text/canonical-json.ts'
import { bodyMemberForCreate } from '../body-members.ts'
import { defineEntity } from '../define-entity.ts'
import { objectField } from '../fields.ts'
import { markShownInEvents } from '../event-visibility.ts'

/**
 * Id of the record with the settings of all controllers; a controller's own record overrides them.
 */
export const globalSettingId = 'global'

const uris = {
  type: 'array',
  maxItems: 64,
  items: { type: 'string', maxLength: 2048 },
} as const

export const oidcSettingsSchema = {
  type: 'object',
  properties: { postLogoutUris: uris, redirectUris: uris },
} as const

/** Settings of one controller (its id is the controller's id) or of all controllers. */
export const controllerSetting = defineEntity({
  name: 'controllerSetting',
  plural: 'controllerSettings',
  isPublished: true,
  operations: {
    management: {
      list: 'controller-setting.read',
      create: 'controller-setting.create',
      detail: 'controller-setting.read',
    },
  },
  idFrom: 'controllerId',
  fields: markShownInEvents({
    oidc: objectField<JsonObject>(oidcSettingsSchema, {}, { mergedOnto: {} }),
  }),
  body: {
    controllerId: bodyMemberForCreate(
      { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' },
      'required',
    ),
  },
  symbols: [],
})
