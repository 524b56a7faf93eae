import type { NamedSchema } from '../../entities/operations.ts'
import {
  dateTimeSchema,
  booleanSchema,
  textSchema,
  openObjectSchema,
} from '../../entities/response-schemas.ts'
import { baseRecordProperties, baseRecordRequired, textListSchema } from '../schemas/envelope.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

/**
 * Maximum characters of a code. A TOTP code has six digits, a recovery code six letters and digits;
 * a text that is longer than this limit is neither.
 */
const CODE_CHARACTERS_MAX = 64

export const mfaCodeSchema = objectSchema(
  'mfaCode',
  { code: { type: 'string', maxLength: CODE_CHARACTERS_MAX } },
  ['code'],
)

export const mfaDetailSchema: NamedSchema = {
  name: 'detailMfa',
  schema: {
    type: 'object',
    properties: {
      ...baseRecordProperties,
      isVerified: booleanSchema,
      provisioningUrl: textSchema,
      recoveryCodes: textListSchema,
    },
    required: [...baseRecordRequired, 'isVerified'],
  },
}

export const mfaRecoveryCodesSchema: NamedSchema = {
  name: 'detailMfaRecoveryCodes',
  schema: {
    type: 'object',
    properties: { ...baseRecordProperties, recoveryCodes: textListSchema },
    required: [...baseRecordRequired, 'recoveryCodes'],
  },
}

export const mfaQrCodeSchema: NamedSchema = {
  name: 'mfaQrCode',
  schema: { type: 'string', contentMediaType: 'image/png' },
}

export const totpTokenSchema: NamedSchema = {
  name: 'totpToken',
  schema: openObjectSchema({ issuedAt: dateTimeSchema, token: textSchema }),
}
