import { correction, generate } from 'lean-qr'
import { toPngBuffer } from 'lean-qr/extras/node_export'
import { base32 } from '../../pki/secrets/totp.ts'

/** Under which name authenticator apps show the codes, before that of the identity. */
const ISSUER = 'Flotilla'
/** Bound of the name in the label: a QR code has room for some 2000 characters in all. */
const NAME_CHARACTERS_MAX = 100
/** White modules around the code, without which scanners do not find it (ISO 18004). */
const QUIET_ZONE = 4
const IMAGE_PIXELS = 256
const BLACK = [0, 0, 0] as const
const WHITE = [255, 255, 255] as const

/**
 * `otpauth://` as authenticator apps read it; what it does not say is what they take for granted.
 */
export function provisioningUrl(secret: Uint8Array, identityName: string): string {
  const name = Array.from(identityName).slice(0, NAME_CHARACTERS_MAX).join('')
  const label = `${ISSUER}:${encodeURIComponent(name.toWellFormed())}`
  return `otpauth://totp/${label}?issuer=${ISSUER}&secret=${base32(secret)}`
}

/** The secret as text for manual entry: authenticator apps ignore the spaces. */
export function typedSecret(secret: Uint8Array): string {
  return base32(secret).replace(/.{4}(?=.)/g, '$& ')
}

/** PNG of about 256 pixels a side. */
export function qrCodePng(text: string): Buffer {
  const code = generate(text, { minCorrectionLevel: correction.M })
  const scale = Math.max(1, Math.floor(IMAGE_PIXELS / (code.size + 2 * QUIET_ZONE)))
  return Buffer.from(toPngBuffer(code, { on: BLACK, off: WHITE, pad: QUIET_ZONE, scale }))
}
