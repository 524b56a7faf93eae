import { timingSafeEqual } from 'node:crypto'
import { HOTP, Secret } from 'otpauth'

/**
 * Time step of RFC 6238, with the defaults of authenticator apps: SHA-1, 6 digits, 30 s, counted
 * from the Unix epoch.
 */
const TOTP_STEP_MS = 30_000
const DIGITS = 6
/**
 * Number of accepted steps before and after the current step, because clocks differ and people need
 * time to type.
 */
const TOTP_SKEW_STEPS = 1

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Number of the 30-second step at a time (RFC 6238). */
export function totpStepAt(ms: number): number {
  return Math.floor(ms / TOTP_STEP_MS)
}

/** The TOTP code of a time step. */
export function totpCode(secret: Uint8Array, step: number): string {
  const parts = { secret: secretOf(secret), algorithm: 'SHA1', digits: DIGITS, counter: step }
  return HOTP.generate(parts)
}

/**
 * Finds the time step near `nowMs` and after `lastStep` whose TOTP code equals `code`; null if
 * there is none. Takes constant time.
 */
export function findTotpStep(
  secret: Uint8Array,
  code: string,
  nowMs: number,
  lastStep: number,
): number | null {
  const current = totpStepAt(nowMs)
  let found: number | null = null
  for (let step = current - TOTP_SKEW_STEPS; step <= current + TOTP_SKEW_STEPS; step += 1) {
    if (step < 0) continue
    const isSame = equalsInConstantTime(totpCode(secret, step), code)
    if (isSame && step > lastStep) found ??= step
  }
  return found
}

/** Compares two strings in constant time. */
export function equalsInConstantTime(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Base32 by RFC 4648 without padding, as provisioning URLs require. */
export function encodeBase32(bytes: Uint8Array): string {
  return secretOf(bytes).base32
}

/** Decodes a base32 string, with or without padding; null if the string is not base32. */
export function decodeBase32(text: string): Uint8Array | null {
  const digits = text.replace(/=+$/, '')
  return /^[A-Z2-7]*$/.test(digits) ? Uint8Array.from(Secret.fromBase32(digits).bytes) : null
}

function secretOf(bytes: Uint8Array): Secret {
  return new Secret({ buffer: Uint8Array.from(bytes).buffer })
}

const RECOVERY_CHARACTERS = 6

/**
 * A random recovery code, one of 26 * 32^5 possible codes. The code begins with a letter, so users
 * cannot mistake it for a TOTP code.
 * @param bytes returns six random bytes per call.
 */
export function generateRecoveryCode(bytes: () => Uint8Array): string {
  for (;;) {
    const code = [...bytes().subarray(0, RECOVERY_CHARACTERS)]
      .map((byte) => BASE32.charAt(byte & 31))
      .join('')
    if (/^[A-Z][A-Z2-7]{5}$/.test(code)) return code
  }
}
