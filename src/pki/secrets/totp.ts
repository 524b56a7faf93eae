import { timingSafeEqual } from 'node:crypto'
import { HOTP, Secret } from 'otpauth'

/** RFC 6238 with the defaults of authenticator apps: SHA-1, 6 digits, 30 s, from the Unix epoch. */
const TOTP_STEP_MS = 30_000
const DIGITS = 6
/**
 * Accepted steps before and after the current one, because clocks differ and people need time to
 * type.
 */
const TOTP_SKEW_STEPS = 1

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Number of the 30-second step at a time (RFC 6238). */
export function totpStepAt(ms: number): number {
  return Math.floor(ms / TOTP_STEP_MS)
}

/** The code of a time step. */
export function totpCode(secret: Uint8Array, step: number): string {
  const parts = { secret: secretOf(secret), algorithm: 'SHA1', digits: DIGITS, counter: step }
  return HOTP.generate(parts)
}

/**
 * The time step near `nowMs` and after `lastStep` whose code equals `code`; null: none. Takes
 * constant time.
 */
export function totpStep(
  secret: Uint8Array,
  code: string,
  nowMs: number,
  lastStep: number,
): number | null {
  const current = totpStepAt(nowMs)
  let found: number | null = null
  for (let step = current - TOTP_SKEW_STEPS; step <= current + TOTP_SKEW_STEPS; step += 1) {
    if (step < 0) continue
    const isSame = isSameCode(totpCode(secret, step), code)
    if (isSame && step > lastStep) found ??= step
  }
  return found
}

/** Compares in constant time. */
export function isSameCode(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** RFC 4648 without padding, the form of provisioning URLs. */
export function base32(bytes: Uint8Array): string {
  return secretOf(bytes).base32
}

/** The bytes of a text in base32, with or without padding; null if it is none. */
export function base32Bytes(text: string): Uint8Array | null {
  const digits = text.replace(/=+$/, '')
  return /^[A-Z2-7]*$/.test(digits) ? Uint8Array.from(Secret.fromBase32(digits).bytes) : null
}

function secretOf(bytes: Uint8Array): Secret {
  return new Secret({ buffer: Uint8Array.from(bytes).buffer })
}

const RECOVERY_CHARACTERS = 6

/**
 * A random recovery code, one of 26 * 32^5; it begins with a letter, so it is never a TOTP code.
 * @param bytes returns six random bytes per call.
 */
export function recoveryCode(bytes: () => Uint8Array): string {
  for (;;) {
    const code = [...bytes().subarray(0, RECOVERY_CHARACTERS)]
      .map((byte) => BASE32.charAt(byte & 31))
      .join('')
    if (/^[A-Z][A-Z2-7]{5}$/.test(code)) return code
  }
}
