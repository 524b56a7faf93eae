import type { NamedSchema } from '../../entities/operations.ts'
import { dateTime, flag, text, wholeObject } from '../../entities/shapes.ts'
import { baseProperties, baseRequired, texts } from '../schemas/envelope.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

/**
 * Maximum characters of a code. A TOTP code has six digits, a recovery code six letters and digits;
 * a longer text is neither.
 */
const CODE_CHARACTERS_MAX = 64

export const mfaCode = objectSchema(
  'mfaCode',
  { code: { type: 'string', maxLength: CODE_CHARACTERS_MAX } },
  ['code'],
)

export const detailMfa: NamedSchema = {
  name: 'detailMfa',
  schema: {
    type: 'object',
    properties: {
      ...baseProperties,
      isVerified: flag,
      provisioningUrl: text,
      recoveryCodes: texts,
    },
    required: [...baseRequired, 'isVerified'],
  },
}

export const detailMfaRecoveryCodes: NamedSchema = {
  name: 'detailMfaRecoveryCodes',
  schema: {
    type: 'object',
    properties: { ...baseProperties, recoveryCodes: texts },
    required: [...baseRequired, 'recoveryCodes'],
  },
}

export const mfaQrCode: NamedSchema = {
  name: 'mfaQrCode',
  schema: { type: 'string', contentMediaType: 'image/png' },
}

export const totpToken: NamedSchema = {
  name: 'totpToken',
  schema: wholeObject({ issuedAt: dateTime, token: text }),
}
