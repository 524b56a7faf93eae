import type { PostureCheck } from '../entities/kinds/posture-check.ts'
import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { Posture, PostureQuery } from '../ports/posture.ts'
import { factorTimes } from './factor-judge.ts'
import { passes, wantedBy } from './posture-judge.ts'

/** Query of a check to clients, and whether the reports of this one pass it. */
export function postureQuery(check: PostureCheck, posture: Posture): PostureQuery {
  return {
    _links: { self: { href: `./posture-checks/${check.id}` } },
    createdAt: new Date(check.createdAt).toISOString(),
    id: check.id,
    isPassing: passes(check, posture),
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
      // Clients look for what has changed by this time.
      const times = [check.updatedAt, factor?.wokenAtMs ?? 0, factor?.unlockedAtMs ?? 0]
      const updatedAt = new Date(Math.max(...times)).toISOString()
      const prompts = { promptOnUnlock, promptOnWake }
      return { processes: [], ...prompts, updatedAt, ...factorTimes(check, factor) }
    }
    default:
      return { processes: [] }
  }
}

function processesOf(check: PostureCheck): { readonly osType: string; readonly path: string }[] {
  return wantedBy(check).map(({ osType, path }) => ({ osType, path }))
}
