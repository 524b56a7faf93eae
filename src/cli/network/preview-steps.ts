import { isObject } from '../../entities/check-fields.ts'
import type { Json, JsonObject } from '../../lib/text/canonical-json.ts'
import type { PreviewChange } from '../access/preview-response.ts'
import type { RecordKind } from '../records/kinds.ts'
import { changeableFields } from './step-runner.ts'
import { type LiveNetwork, tableForKind } from './live-network.ts'
import type { NetworkStep } from './plan.ts'
import { toRequestBody, translateReferences } from './network-file-fields.ts'

/** Kinds that a preview supports; however, a preview cannot create an edge router. */
const previewed: ReadonlySet<string> = new Set([
  'identity',
  'service',
  'servicePolicy',
  'edgeRouterPolicy',
  'serviceEdgeRouterPolicy',
  'postureCheck',
  'edgeRouter',
])

/**
 * Marks a reference to a record that the preview does not contain, until `present` removes the
 * reference.
 */
const ABSENT = '\u0000'

/** The changes of a plan in the format of the preview API. */
interface PreviewOfSteps {
  readonly changes: readonly PreviewChange[]
  /** Number of steps that the preview omits. */
  readonly leftOut: number
}

/**
 * Converts the steps that affect access to changes for the preview API. References to records that
 * the omitted steps would create are removed.
 */
export function toPreviewChanges(steps: readonly NetworkStep[], live: LiveNetwork): PreviewOfSteps {
  const made = new Map<string, string>()
  const changes: PreviewChange[] = []
  for (const step of steps) {
    const { kind } = (step.verb === 'delete' ? step.live : step.wanted).section
    if (!previewed.has(kind.id) || step.verb === 'adopt') continue
    if (step.verb === 'create' && kind.id === 'edgeRouter') continue
    if (step.verb === 'delete') {
      changes.push({ action: 'delete', kind: kind.id, id: step.live.id })
      continue
    }
    const idOf = (to: string, name: string): string =>
      made.get(`${tableForKind(to)} ${name}`) ?? live.idOf(to, name) ?? ABSENT
    const body = toRequestBody(kind, translateReferences(kind, step.wanted.fields, idOf))
    if (step.verb === 'update') {
      const data = present(changeableFields(kind, body))
      changes.push({ action: 'replace', kind: kind.id, id: step.live.id, data })
      continue
    }
    const id = `new-${changes.length + 1}`
    const { name } = step.wanted.fields
    if (typeof name === 'string') made.set(`${tableForKind(kind.id)} ${name}`, id)
    changes.push({ action: 'create', kind: kind.id, id, data: present(createdAs(kind, body)) })
  }
  return { changes, leftOut: steps.length - changes.length }
}

/**
 * The body with which the preview creates a record. An identity without a type becomes a Device.
 */
function createdAs({ id }: RecordKind, body: JsonObject): JsonObject {
  return id === 'identity' && body['type'] === undefined ? { ...body, type: 'Device' } : body
}

/** The object without references to records that the preview does not contain. */
function present(fields: JsonObject): JsonObject {
  const isAbsent = (value: Json): boolean => value === ABSENT || value === `@${ABSENT}`
  const kept: [string, Json][] = []
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || isAbsent(value) || name === ABSENT) continue
    if (Array.isArray(value)) {
      kept.push([name, (value as readonly Json[]).filter((one) => !isAbsent(one))])
    } else kept.push([name, isObject(value) ? present(value) : value])
  }
  return Object.fromEntries(kept)
}
