import type { ApiSession } from '../../entities/kinds/api-session.ts'
import type { Enrollment } from '../../entities/kinds/enrollment.ts'
import type { Revocation } from '../../entities/kinds/revocation.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { CommandContext } from '../apply/context.ts'
import { identityGuard } from '../apply/authority.ts'
import { refused } from '../apply/outcome.ts'
import type { State } from '../records/state.ts'
import type { Consequences, KindRules, Write, Written } from '../apply/kind-rules.ts'

export const revocationLimits = {
  /**
   * Longer than any token lives that it could speak of, those of sessions left aside, which end
   * with their session.
   */
  lifetimeMs: 24 * 60 * 60_000,
  revocationsMax: 10_000,
} as const

export const revocationRules: KindRules = { judgeWrite: judgeRevocation, afterWrite: settle }

function judgeRevocation(
  state: State,
  { id, before, after }: Write,
  context: CommandContext,
): Outcome | null {
  const { logTimeMs } = context
  const type = after['type'] as Revocation['type']
  // To end the sessions of somebody is to act on that identity.
  const denial =
    before === undefined ? identityGuard(state, holderOf(state, { id, type }), context) : null
  if (denial !== null) return denial
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

/**
 * What was signed before for what it names is honoured no more: its API sessions end, which their
 * tokens rest on, and so do the service sessions of those, or the enrollment whose token has that
 * id. Its end is counted from log time; those whose end has come go with it.
 */
function settle({ before, after }: Written, consequences: Consequences): void {
  const { state, context, put, remove } = consequences
  if (before === undefined) endRevoked(after as Revocation, consequences)
  const expiresAt = context.logTimeMs + revocationLimits.lifetimeMs
  put('revocation', after.id, { ...after, expiresAt })
  for (const one of revocations(state)) {
    if ((one.expiresAt ?? 0) <= context.logTimeMs) remove('revocation', one.id)
  }
}

function endRevoked({ id, type }: Revocation, { state, remove }: Consequences): void {
  if (type === 'API_SESSION') remove('apiSession', id)
  if (type === 'JTI') {
    const enrollment = enrollmentBy(state, id)
    if (enrollment !== undefined) remove('enrollment', enrollment.id)
  }
  if (type !== 'IDENTITY') return
  for (const session of [...state.table('apiSession').indexes.ids('identityId', id)].sort()) {
    remove('apiSession', session)
  }
}

/** Whose tokens it names; '' where nobody's are known. */
function holderOf(state: State, { id, type }: Pick<Revocation, 'id' | 'type'>): string {
  if (type === 'IDENTITY') return id
  if (type === 'JTI') return enrollmentBy(state, id)?.identityId ?? ''
  return state.get<ApiSession>('apiSession', id)?.identityId ?? ''
}

/** The token of an enrollment is the id of the JWT that it is told in. */
function enrollmentBy(state: State, token: string): Enrollment | undefined {
  const id = state.table('enrollment').indexes.owner('token', token)
  return id === undefined ? undefined : state.get<Enrollment>('enrollment', id)
}

/** In the order of their ids, as every controller must go through them. */
function revocations(state: State): Revocation[] {
  return [...state.table('revocation').ids].flatMap(
    (id) => state.get<Revocation>('revocation', id) ?? [],
  )
}
