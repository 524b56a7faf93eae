import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, ServiceSessionCreateSchema } from '../../../proto/gen/command_pb.ts'
import type { ApiSession } from '../../entities/kinds/api-session.ts'
import { canonicalJson, type JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem } from '../../lib/problems.ts'
import type { PostureService } from '../../ports/posture.ts'
import { type JudgedPosture, unknownPosture } from '../../ports/judged-posture.ts'
import type { DialBind, StateView } from '../../ports/state-view.ts'
import type { CommandWriter, WriteOrigin } from '../../ports/writer.ts'

export interface WantedSession {
  readonly id: string
  readonly identityId: string
  readonly serviceId: string
  readonly type: DialBind
  readonly tags: JsonObject
}

export interface ServiceSessionDeps {
  readonly state: StateView
  readonly posture: Pick<PostureService, 'ofSession' | 'grantingChecks' | 'failures' | 'refused'>
  readonly writer: CommandWriter
  readonly limits: { readonly judgementsMax: number }
}

/**
 * Judges the posture of the client of an API session and asks for a service session; again where a
 * check changed in between, so that it was refused for what would pass now. A client of OIDC tells
 * its posture to routers, and is connected to none before it has a service session: what it dials
 * or hosts is judged instead.
 * @param apiSession as it was when the client was admitted.
 * @returns its id: that of the one that is there, where there is one for the service and the type.
 * @throws {Problem} what apply refuses it with; INVALID_POSTURE with the checks that fail.
 */
export async function openServiceSession(
  { state, posture, writer, limits }: ServiceSessionDeps,
  origin: WriteOrigin,
  apiSession: ApiSession,
  { id, identityId, serviceId, type, tags }: WantedSession,
): Promise<string> {
  const apiSessionId = apiSession.id
  const wanted = { apiSessionId, identityId, serviceId, type }
  for (let judgements = 1; ; judgements += 1) {
    // The session as it stands now: a code may have been given since the client was admitted.
    const now = state.get('apiSession', apiSessionId) ?? apiSession
    const shown = isJudgedLater(now) ? judgedLater : posture.ofSession(now)
    const passingChecks = posture
      .grantingChecks(wanted, shown)
      .map((check) => ({ id: check.id, revision: BigInt(check.revision) }))
    const tagsJson = new TextEncoder().encode(canonicalJson(tags))
    const fields = { id, apiSessionId, serviceId, type, tagsJson, passingChecks }
    const payload = toBinary(ServiceSessionCreateSchema, create(ServiceSessionCreateSchema, fields))
    try {
      return await writer.write(origin, { kind: CommandKind.SERVICE_SESSION_CREATE, payload })
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== 'INVALID_POSTURE') throw error
      const failures = posture.failures(wanted, shown)
      if (failures.length > 0 || judgements >= limits.judgementsMax) {
        throw posture.refused(wanted, failures, error)
      }
      origin.onProposed(null)
    }
  }
}

function isJudgedLater(apiSession: ApiSession): boolean {
  return Boolean(apiSession.clientId)
}

const judgedLater: JudgedPosture = { ...unknownPosture, passes: () => true }
