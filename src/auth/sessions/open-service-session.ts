import { create, toBinary } from '@bufbuild/protobuf'

import { CommandKind, ServiceSessionCreateSchema } from '../../../proto/gen/command_pb.ts'
import type { ApiSession } from '../../entities/kinds/api-session.ts'
import { canonicalJson, type JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem } from '../../lib/problems.ts'
import type { PostureService } from '../../ports/posture.ts'
import { type EvaluatedPosture, unknownPosture } from '../../ports/evaluated-posture.ts'
import type { DialBind, StateView } from '../../ports/state-view.ts'
import type { CommandWriter, WriteOrigin } from '../../ports/writer.ts'

interface WantedSession {
  readonly id: string
  readonly identityId: string
  readonly serviceId: string
  readonly type: DialBind
  readonly tags: JsonObject
}

export interface ServiceSessionDeps {
  readonly state: StateView
  readonly posture: Pick<
    PostureService,
    'ofSession' | 'grantingChecks' | 'failures' | 'refused' | 'reachLatest'
  >
  readonly writer: CommandWriter
  readonly limits: { readonly judgementsMax: number }
}

/**
 * Opens a service session if the client's posture passes the checks of a policy that grants access.
 * For an OIDC session, the posture is not evaluated here, because the client reports it to its
 * router. If the state machine refuses the entry because a posture check has changed, evaluates the
 * posture again, `judgementsMax` times in total.
 */
export async function openServiceSession(
  { state, posture, writer, limits }: ServiceSessionDeps,
  origin: WriteOrigin,
  apiSession: ApiSession,
  { id, identityId, serviceId, type, tags }: WantedSession,
): Promise<string> {
  const apiSessionId = apiSession.id
  const wanted = { apiSessionId, identityId, serviceId, type }
  const shownBy = (session: ApiSession): EvaluatedPosture =>
    isJudgedLater(session) ? judgedLater : posture.ofSession(session)
  const isFailing = posture.failures(wanted, shownBy(apiSession)).length > 0
  // Reads the latest state, because the client may have just reported its posture to another
  // controller.
  if (isFailing) await posture.reachLatest()
  for (let judgements = 1; ; judgements += 1) {
    // Reads the session again, because its client may have submitted a code since the request was
    // admitted.
    const now = state.get('apiSession', apiSessionId) ?? apiSession
    const shown = shownBy(now)
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

const judgedLater: EvaluatedPosture = { ...unknownPosture, passes: () => true }
