import { CommandKind } from '../../../proto/gen/command_pb.ts'
import { enrollment, type EnrollmentMethod } from '../../entities/kinds/enrollment.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { fieldProblem } from '../../lib/problems.ts'
import { dateTimeMs } from '../../lib/text/date-time.ts'
import { requirePresent } from '../../lib/assert.ts'
import { newShortId } from '../../lib/random.ts'
import { newEnrollmentToken } from './enrollment-tokens.ts'
import type { BatchWriteStep } from '../http/proposal-writer.ts'
import type { WritePreparer } from './write-preparer.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'
import type { JwtSigner } from '../../auth/sessions/jwt-signer.ts'
import type { ApiVersionsKey } from '../api-deps.ts'

interface EnrollmentFieldsDeps {
  readonly cluster: ClusterView
  readonly state: StateView
  readonly reads: LinearizableReads
  readonly jwt: JwtSigner
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
}

/** The data from which the fields of a new enrollment are made. */
export interface NewEnrollment {
  readonly method: EnrollmentMethod
  /** Field of the enrollment that contains the subject's id. */
  readonly of: 'identityId' | 'edgeRouterId' | 'transitRouterId'
  readonly subjectId: string
  readonly expiresAtMs: number
  readonly caId?: string
  readonly username?: string
}

async function enrollmentFields(
  deps: EnrollmentFieldsDeps,
  input: NewEnrollment,
): Promise<JsonObject> {
  const { method, of, subjectId, caId, username } = input
  return {
    method,
    [of]: subjectId,
    ...(await newEnrollmentToken(deps, input)),
    ...(method === 'ottca' ? { caId: caId ?? '' } : {}),
    ...(method === 'updb' ? { username: username ?? null } : {}),
  }
}

/**
 * The batch step that creates an enrollment, together with other writes such as that of its
 * identity or router.
 */
export async function enrollmentBatchStep(
  deps: EnrollmentFieldsDeps,
  input: NewEnrollment,
): Promise<BatchWriteStep> {
  return {
    kind: CommandKind.ENTITY_CREATE,
    entity: 'enrollment',
    id: newShortId(),
    fields: await enrollmentFields(deps, input),
  }
}

/** Parses a time that the schema has accepted, as UTC ms. */
export function parseTimeMs(text: Json | undefined): number {
  return requirePresent(dateTimeMs(String(text)), 'the format date-time accepts what this reads')
}

/**
 * Checks that the CA exists, even if the enrollment method needs no CA: a caller that names a CA
 * expects that it is used.
 */
async function mustHaveCa(deps: EnrollmentFieldsDeps, caId: string): Promise<void> {
  const found = await deps.reads.latest(() => deps.state.get('ca', caId))
  if (found === undefined) throw fieldProblem('caId', 'ca not found', caId.slice(0, 128))
}

export function enrollmentPreparer(deps: EnrollmentFieldsDeps): WritePreparer {
  return async (_call, mode, body) => {
    const { fields, ignoredFields } = normalizeBody(enrollment, mode, body)
    const { caId, username } = body
    if (typeof caId === 'string' && caId !== '') await mustHaveCa(deps, caId)
    const made = await enrollmentFields(deps, {
      method: body['method'] as EnrollmentMethod,
      of: 'identityId',
      subjectId: String(body['identityId']),
      expiresAtMs: parseTimeMs(body['expiresAt']),
      ...(typeof caId === 'string' ? { caId } : {}),
      ...(typeof username === 'string' ? { username } : {}),
    })
    return { fields: { ...fields, ...made }, ignoredFields }
  }
}
