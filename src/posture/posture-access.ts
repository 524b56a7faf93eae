import type { PostureCheck } from '../entities/kinds/posture-check.ts'
import type { GrantedRight, Posture, PostureFailure, StoredFactor } from '../ports/posture.ts'
import type { EvaluatedPosture, PostureQuery } from '../ports/evaluated-posture.ts'
import type {
  PolicyWithPostureChecks,
  EvaluatedPostureCheck,
  PromptedService,
  CodePrompts,
  StateView,
} from '../ports/state-view.ts'
import { clientMfaTimes, timesUntilCodeRequired } from './factor-evaluation.ts'
import {
  expectedAndActualValues,
  passesPostureCheck,
  requiredProcesses,
} from './posture-evaluation.ts'
import type { JsonObject } from '../lib/text/canonical-json.ts'

/**
 * Maximum services in one response. Further services are left out; the client can find them in its
 * posture queries.
 */
export const promptedServicesMax = 1000

type Policies = Pick<StateView, 'get' | 'policiesBetween' | 'policiesOfIdentity'>

/**
 * A posture that is loaded only when the first check is evaluated, because most services have no
 * checks.
 * @param find loads the posture; called at most once.
 */
export function lazyEvaluatedPosture(find: () => Posture): EvaluatedPosture {
  let found: Posture | null = null
  const posture = (): Posture => (found ??= find())
  return {
    passes: (check) => passesPostureCheck(check, posture()),
    queryOf: (check) => postureQuery(check, posture()),
    valuesOf: (check) => expectedAndActualValues(check, posture()),
  }
}

/**
 * The policies that do not grant access because of posture; [] when some policy grants access or no
 * policy applies.
 */
export function postureFailures(
  state: Policies,
  { identityId, serviceId, type }: GrantedRight,
  posture: EvaluatedPosture,
): readonly PostureFailure[] {
  const failures: PostureFailure[] = []
  for (const policy of state.policiesBetween(identityId, serviceId, type)) {
    const checks = checksOf(policy).filter((check) => !posture.passes(check))
    if (checks.length === 0) return []
    failures.push({
      policyId: policy.id,
      policyName: policy.name,
      checks: checks.map((check) => {
        const { id, name, typeId } = check
        return { id, name, typeId, values: posture.valuesOf(check) }
      }),
    })
  }
  return failures
}

/** The checks of the first policy whose checks all pass; [] if there is no such policy. */
export function grantingPostureChecks(
  state: Policies,
  { identityId, serviceId, type }: GrantedRight,
  posture: EvaluatedPosture,
): readonly EvaluatedPostureCheck[] {
  for (const policy of state.policiesBetween(identityId, serviceId, type)) {
    const checks = checksOf(policy)
    if (!checks.every((check) => posture.passes(check))) continue
    return checks.map(({ id, revision }) => ({ id, revision }))
  }
  return []
}

/** Posture checks of all policies that apply to an identity, in id order. */
export function identityPostureChecks(
  state: Policies,
  identityId: string,
): readonly PostureCheck[] {
  const found = new Map<string, PostureCheck>()
  for (const policy of state.policiesOfIdentity(identityId)) {
    for (const check of checksOf(policy)) found.set(check.id, check)
  }
  return [...found.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}

/**
 * Services that a policy grants to an identity, but soon only with a new code, because the
 * identity's device woke or was unlocked. In id order, at most `promptedServicesMax`. If several
 * checks apply to a service, the shortest timeout is returned.
 */
export function servicesSoonRequiringCode(
  state: Policies,
  identityId: string,
  prompts: CodePrompts,
  factor: StoredFactor,
): readonly PromptedService[] {
  const found = new Map<string, PromptedService>()
  for (const policy of state.policiesOfIdentity(identityId)) {
    const times = checksOf(policy)
      .filter((check) => isAsked(check, prompts))
      .flatMap((check) => timesUntilCodeRequired(check, factor) ?? [])
    const [shortest] = times.sort((a, b) => orderOf(a.timeout) - orderOf(b.timeout))
    if (shortest === undefined) continue
    for (const id of policy.serviceIds()) {
      const known = found.get(id)
      if (known === undefined && found.size >= promptedServicesMax) break
      if (known !== undefined && orderOf(known.timeout) <= orderOf(shortest.timeout)) continue
      found.set(id, { id, name: state.get('service', id)?.name ?? '', ...shortest })
    }
  }
  return [...found.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}

function checksOf(policy: PolicyWithPostureChecks): readonly PostureCheck[] {
  return policy.checks()
}

/** Sort key that puts "no timeout" after all timeouts. */
function orderOf(timeout: number): number {
  return timeout < 0 ? Infinity : timeout
}

function isAsked(check: PostureCheck, { isWoken, isUnlocked }: CodePrompts): boolean {
  if (check.typeId !== 'MFA') return false
  return (isWoken && check.promptOnWake) || (isUnlocked && check.promptOnUnlock)
}

/**
 * A check as a posture query for clients. The query contains whether the client's reports pass the
 * check.
 */
function postureQuery(check: PostureCheck, posture: Posture): PostureQuery {
  return {
    _links: { self: { href: `./posture-checks/${check.id}` } },
    createdAt: new Date(check.createdAt).toISOString(),
    id: check.id,
    isPassing: passesPostureCheck(check, posture),
    queryType: check.typeId,
    tags: check.tags,
    timeout: -1,
    timeoutRemaining: -1,
    updatedAt: new Date(check.updatedAt).toISOString(),
    ...ofType(check, posture),
  }
}

function ofType(check: PostureCheck, { factor }: Posture): JsonObject {
  switch (check.typeId) {
    case 'PROCESS': {
      const [process] = processesOf(check)
      return { processes: [], ...(process === undefined ? {} : { process }) }
    }
    case 'PROCESS_MULTI':
      return { processes: processesOf(check) }
    case 'MFA': {
      const { promptOnWake, promptOnUnlock } = check
      // The latest of these times is the query's update time, which clients compare to detect
      // changes.
      const times = [check.updatedAt, factor?.wokenAtMs ?? 0, factor?.unlockedAtMs ?? 0]
      const updatedAt = new Date(Math.max(...times)).toISOString()
      const prompts = { promptOnUnlock, promptOnWake }
      const timed = clientMfaTimes(check, factor)
      return { processes: [], ...prompts, updatedAt, ...timed, ...timeoutAt(timed, factor) }
    }
    default:
      return { processes: [] }
  }
}

/**
 * Time at which the check requires a new code, for clients that display this time; {} if there is
 * no session, or if the check has no timeout for this client.
 */
function timeoutAt(
  { timeoutRemaining }: { readonly timeoutRemaining: number },
  factor: Posture['factor'],
): JsonObject {
  if (factor === undefined || timeoutRemaining < 0) return {}
  return { timeoutAt: new Date(factor.nowMs + timeoutRemaining * 1000).toISOString() }
}

function processesOf(check: PostureCheck): { readonly osType: string; readonly path: string }[] {
  return requiredProcesses(check).map(({ osType, path }) => ({ osType, path }))
}
