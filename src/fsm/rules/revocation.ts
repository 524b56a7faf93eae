import type { Revocation } from '../../entities/revocation.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { CommandContext } from '../commands/context.ts'
import { refused } from '../commands/outcome.ts'
import type { State } from '../state.ts'
import type { Consequences, KindRules, Write, Written } from './kind-rules.ts'

export const revocationLimits = {
  /** Longer than any token lives that it could speak of, those of sessions left aside, which end with their session. */
  lifetimeMs: 24 * 60 * 60_000,
  revocationsMax: 10_000,
} as const

export const revocationRules: KindRules = { judgeWrite: judgeRevocation, afterWrite: settle }

function judgeRevocation(
  state: State,
  _write: Write,
  { logTimeMs }: CommandContext,
): Outcome | null {
  const { revocationsMax } = revocationLimits
  if (state.table('revocation').rows.size < revocationsMax) return null
  const inForce = revocations(state).filter((one) => (one.expiresAt ?? 0) > logTimeMs)
  return inForce.length < revocationsMax ? null : tooMany()
}

function tooMany(): Outcome {
  const { revocationsMax } = revocationLimits
  return refused(
    'SERVER_TOO_MANY_REQUESTS',
    `${revocationsMax} revocations are in force; wait until some have expired`,
  )
}

/** Its end is counted from log time; those whose end has come go with it. */
function settle({ after }: Written, { state, context, put, remove }: Consequences): void {
  const expiresAt = context.logTimeMs + revocationLimits.lifetimeMs
  put('revocation', after.id, { ...after, expiresAt })
  for (const one of revocations(state)) {
    if ((one.expiresAt ?? 0) <= context.logTimeMs) remove('revocation', one.id)
  }
}

/** In the order of their ids, as every controller must go through them. */
function revocations(state: State): Revocation[] {
  return [...state.table('revocation').ids].flatMap(
    (id) => state.get<Revocation>('revocation', id) ?? [],
  )
}
