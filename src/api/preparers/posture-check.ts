import { normalizeBody } from '../../entities/normalize-body.ts'
import {
  postureCheck,
  postureFields,
  type PostureType,
} from '../../entities/kinds/posture-check.ts'
import type { RequestMode } from '../../entities/define-entity.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import { extractHexDigits } from '../../lib/text/hex-digits.ts'
import { Problem, fieldProblem } from '../../lib/problems.ts'
import { isVersionRange } from '../../lib/text/version-range.ts'
import type { Preparer } from './preparer.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LinearizableReads } from '../http/linearizable-reads.ts'

interface PostureCheckPreparerDeps {
  readonly state: StateView
  readonly reads: LinearizableReads
}

/**
 * The type determines which fields a body has. Fields of other types are ignored, and the response
 * lists them.
 */
export function postureCheckPreparer(deps: PostureCheckPreparerDeps): Preparer {
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
 * The type of a stored check. It never changes, so the write does not depend on the record's
 * revision.
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

/**
 * Normalizes a field.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
export function normalizePostureField(name: string, value: Json): Json {
  switch (name) {
    case 'operatingSystems':
      return operatingSystems(value as readonly JsonObject[])
    case 'macAddresses':
      return (value as readonly string[]).map(macAddress)
    case 'processes':
      return (value as readonly JsonObject[]).map((one) => ({
        hashes: [],
        signerFingerprints: [],
        ...one,
      }))
    case 'timeoutSeconds':
      return Number(value) > 0 ? value : -1
    default:
      return value
  }
}

/** One entry per operating system; a later entry replaces earlier ones of the same type. */
function operatingSystems(items: readonly JsonObject[]): Json {
  for (const { versions } of items) {
    for (const version of versions as readonly string[]) {
      if (isVersionRange(version)) continue
      const reason = 'versions must be semantic version ranges, like ">=10.0.0 <11.0.0"'
      throw fieldProblem('operatingSystems', reason, version)
    }
  }
  return [...new Map(items.map((item) => [item['type'], item])).values()]
}

/** Normalizes an address of 48 or 64 bits, in any common notation. */
function macAddress(text: string): string {
  const hex = extractHexDigits(text)
  if (hex.length === 12 || hex.length === 16) return hex
  throw fieldProblem('macAddresses', 'must be hardware addresses, like 00:1b:44:11:3a:b7', text)
}
