import { normalizeBody } from '../../entities/normalize-body.ts'
import { normalizePostureField } from '../../entities/posture-values.ts'
import {
  postureCheck,
  postureFields,
  type PostureType,
} from '../../entities/kinds/posture-check.ts'
import type { RequestMode } from '../../entities/define-entity.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import type { WritePreparer } from './write-preparer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'

interface PostureCheckPreparerDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
}

/**
 * Prepares a posture check. Its type determines which fields are used; the response lists fields of
 * other types as ignored.
 */
export function postureCheckPreparer(deps: PostureCheckPreparerDeps): WritePreparer {
  return async (_call, mode, body, id) => {
    const type = await typeOf(deps, id, mode, body)
    const { required, optional } = postureFields[type]
    const ofType = new Set<string>([...required, ...optional])
    const { fields, ignoredFields } = normalizeBody(postureCheck, mode, body)
    if (mode !== 'patch') {
      const missing = required.find((name) => (body[name] ?? null) === null)
      if (missing !== undefined) throw fieldProblem(missing, `${missing} is required`)
    }
    const kept: Record<string, Json> = {}
    for (const [name, value] of Object.entries(fields)) {
      if (ofType.has(name)) kept[name] = normalizePostureField(name, value)
      else if (!isOfSomeType(name)) kept[name] = value
      else if (mode !== 'patch') kept[name] = postureCheck.fields[name]?.zero ?? null
    }
    const ofOthers = Object.keys(body).filter((name) => isOfSomeType(name) && !ofType.has(name))
    return { fields: kept, ignoredFields: [...ignoredFields, ...ofOthers] }
  }
}

const someFields = new Set<string>(
  Object.values(postureFields).flatMap(({ required, optional }) => [...required, ...optional]),
)
const isOfSomeType = (name: string): boolean => someFields.has(name)

/**
 * The type of a check: from the body of a creation, otherwise from the stored record. A stored type
 * never changes, so the write does not depend on the record's revision.
 */
async function typeOf(
  deps: PostureCheckPreparerDeps,
  id: string,
  mode: RequestMode,
  body: JsonObject,
): Promise<PostureType> {
  const said = body['typeId'] as PostureType | null | undefined
  if (mode === 'create') return body['typeId'] as PostureType
  const known = await deps.reads.latest(() => deps.state.get('postureCheck', id))
  if (known === undefined) {
    throw new Problem('NOT_FOUND', { detail: `postureCheck with id ${id} not found` })
  }
  if (said === undefined || said === null || said === known.typeId) return known.typeId
  throw fieldProblem('typeId', 'the type of a posture check cannot be changed', said)
}
