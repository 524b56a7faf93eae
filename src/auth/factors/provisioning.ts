import { correction, generate } from 'lean-qr'
import { toPngBuffer } from 'lean-qr/extras/node_export'
import { encodeBase32 } from '../../pki/secrets/totp.ts'

/** Issuer name that authenticator apps show before the identity's name. */
const ISSUER = 'Flotilla'
/**
 * Maximum characters of the name in the label, because a QR code has room for about 2000
 * characters.
 */
const NAME_CHARACTERS_MAX = 100
/** Quiet zone around the code, in modules; scanners need it (ISO 18004). */
const QUIET_ZONE = 4
const IMAGE_PIXELS = 256
const BLACK = [0, 0, 0] as const
const WHITE = [255, 255, 255] as const

/** `otpauth://` URL for authenticator apps; omitted parameters have their default values. */
export function totpProvisioningUrl(secret: Uint8Array, identityName: string): string {
  const name = Array.from(identityName).slice(0, NAME_CHARACTERS_MAX).join('')
  const label = `${ISSUER}:${encodeURIComponent(name.toWellFormed())}`
  return `otpauth://totp/${label}?issuer=${ISSUER}&secret=${encodeBase32(secret)}`
}

/** The secret as text for manual entry: authenticator apps ignore the spaces. */
export function totpManualEntryText(secret: Uint8Array): string {
  return encodeBase32(secret).replace(/.{4}(?=.)/g, '$& ')
}

/** PNG of a QR code, at most 256 pixels wide and high. */
export function qrCodePng(text: string): Buffer {
  const code = generate(text, { minCorrectionLevel: correction.M })
  const scale = Math.max(1, Math.floor(IMAGE_PIXELS / (code.size + 2 * QUIET_ZONE)))
  return Buffer.from(toPngBuffer(code, { on: BLACK, off: WHITE, pad: QUIET_ZONE, scale }))
}
