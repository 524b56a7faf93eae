import { expect } from 'vitest'
import { codeOf } from '../../support/totp.ts'
import { type CallerOf, client, management, type Reply } from './caller.ts'
import type { TestController } from './controller.ts'
import { made } from './network.ts'

const STEP_MS = 30_000

export interface MfaDetail {
  readonly isVerified: boolean
  readonly provisioningUrl?: string
  readonly recoveryCodes?: readonly string[]
}

/** A person with an authenticator app. */
export class Authenticator {
  readonly #controller: Pick<TestController, 'clock'>
  readonly url: string
  readonly recoveryCodes: readonly string[]

  constructor(controller: Pick<TestController, 'clock'>, detail: MfaDetail) {
    this.#controller = controller
    this.url = detail.provisioningUrl ?? ''
    this.recoveryCodes = detail.recoveryCodes ?? []
  }

  /** The current code, or the code of a number of steps later. */
  code(stepsLater = 0): string {
    return codeOf(this.url, this.#controller.clock.nowMs() + stepsLater * STEP_MS)
  }

  /** Advances the time by one step. @returns the code of the new step. */
  freshCode(): string {
    this.#controller.clock.advance(STEP_MS)
    return this.code()
  }

  /** Six digits that are not the code of any step near the current one. */
  wrongCode(): string {
    const near = new Set([-2, -1, 0, 1, 2].map((steps) => this.code(steps)))
    for (let number = 100_000; ; number += 1) {
      if (!near.has(String(number))) return String(number)
    }
  }
}

/** The authenticator app of a person who types the key from the page of a log-in. */
export function appOfPage(
  controller: Pick<TestController, 'clock'>,
  { text }: { readonly text: string },
): Authenticator {
  const [, typed = ''] = /<p class="key">([A-Z2-7 ]+)<\/p>/.exec(text) ?? []
  expect(typed, text).not.toBe('')
  return new Authenticator(controller, {
    isVerified: false,
    provisioningUrl: `otpauth://totp/app?secret=${typed.replaceAll(' ', '')}`,
    recoveryCodes: Array.from(text.matchAll(/<li><code>(\w+)<\/code>/g), ([, code = '']) => code),
  })
}

/** Creates an auth policy that requires a TOTP code in addition to a password. @returns its ID. */
export function policyOfCodes(root: CallerOf): Promise<string> {
  return made(root, `${management}/auth-policies`, {
    name: 'codes',
    primary: {
      cert: { allowed: false, allowExpiredCerts: false },
      extJwt: { allowed: false, allowedSigners: [] },
      updb: {
        allowed: true,
        minPasswordLength: 8,
        requireSpecialChar: false,
        requireNumberChar: false,
        requireMixedCase: false,
        maxAttempts: 0,
        lockoutDurationMinutes: 0,
      },
    },
    secondary: { requireTotp: true, requireExtJwtSigner: null },
  })
}

export const mfaPath = `${client}/current-identity/mfa`

/** Starts the MFA enrollment of a caller. */
export async function beginMfa(
  controller: Pick<TestController, 'clock'>,
  caller: CallerOf,
): Promise<Authenticator> {
  const begun = await caller.call('POST', mfaPath)
  expect(begun.status, begun.text).toBe(201)
  const shown = await caller.get(mfaPath)
  expect(shown.status, shown.text).toBe(200)
  return new Authenticator(controller, shown.body.data as MfaDetail)
}

/** Starts the MFA enrollment of a caller, and verifies it with the current code. */
export async function turnOnMfa(
  controller: Pick<TestController, 'clock'>,
  caller: CallerOf,
): Promise<Authenticator> {
  const app = await beginMfa(controller, caller)
  const verified = await caller.call('POST', `${mfaPath}/verify`, { code: app.code() })
  expect(verified.status, verified.text).toBe(200)
  return app
}

export function giveCode(caller: CallerOf, code: string): Promise<Reply> {
  return caller.call('POST', `${client}/authenticate/mfa`, { code })
}
