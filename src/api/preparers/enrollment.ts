import { CommandKind } from '../../../proto/gen/command_pb.ts'
import { enrollment, type EnrollmentMethod } from '../../entities/kinds/enrollment.ts'
import { normalise } from '../../entities/normalise.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { fieldProblem } from '../../lib/problems.ts'
import { newShortId } from '../../lib/random.ts'
import { newEnrollmentToken } from '../records/enrollment-tokens.ts'
import type { ApiParts } from '../parts.ts'
import type { WriteStep } from '../records/writes.ts'
import type { Preparer } from './preparer.ts'

type Parts = Pick<ApiParts, 'bindings' | 'jwt' | 'cluster'>

/** An enrollment as it is proposed. */
export interface NewEnrollment {
  readonly method: EnrollmentMethod
  /** Who is to enroll, by the field that names it. */
  readonly of: 'identityId' | 'edgeRouterId' | 'transitRouterId'
  readonly subjectId: string
  readonly expiresAtMs: number
  readonly caId?: string
  readonly username?: string
}

export async function enrollmentFields(parts: Parts, input: NewEnrollment): Promise<JsonObject> {
  const { method, of, subjectId, caId, username } = input
  return {
    method,
    [of]: subjectId,
    ...(await newEnrollmentToken(parts, input)),
    ...(method === 'ottca' ? { caId: caId ?? '' } : {}),
    ...(method === 'updb' ? { username: username ?? null } : {}),
  }
}

/** The step of a batch that makes an enrollment beside what it is for. */
export async function enrollmentStep(parts: Parts, input: NewEnrollment): Promise<WriteStep> {
  return {
    kind: CommandKind.ENTITY_CREATE,
    entity: 'enrollment',
    id: newShortId(),
    fields: await enrollmentFields(parts, input),
  }
}

/** UTC ms of a time that its schema accepted. */
export function timeOf(text: Json | undefined): number {
  return Date.parse(String(text))
}

/** Also where the method asks for none: whoever names one expects it to count. */
async function mustHaveCa(parts: ApiParts, caId: string): Promise<void> {
  const found = await parts.reads.latest(() => parts.state.get('ca', caId))
  if (found === undefined) throw fieldProblem('caId', 'ca not found', caId.slice(0, 128))
}

export function enrollmentPreparer(parts: ApiParts): Preparer {
  return async (_call, mode, body) => {
    const { fields, ignoredFields } = normalise(enrollment, mode, body)
    const { caId, username } = body
    if (typeof caId === 'string' && caId !== '') await mustHaveCa(parts, caId)
    const made = await enrollmentFields(parts, {
      method: body['method'] as EnrollmentMethod,
      of: 'identityId',
      subjectId: String(body['identityId']),
      expiresAtMs: timeOf(body['expiresAt']),
      ...(typeof caId === 'string' ? { caId } : {}),
      ...(typeof username === 'string' ? { username } : {}),
    })
    return { fields: { ...fields, ...made }, ignoredFields }
  }
}
