import { inspectionLimits } from '../../api/fabric/inspections.ts'
import { FABRIC_API_PATH } from '../../client/cluster-client.ts'
import { formatYaml } from '../../config/engine/yaml-tree.ts'
import { CommandFailure, EXIT_UNREACHABLE, usageFailure } from '../../controller/command-failure.ts'
import type { Json } from '../../lib/text/canonical-json.ts'
import { parseJsonOrNull } from '../../lib/text/json-value.ts'
import { printableLine } from '../../lib/text/terminal-text.ts'
import {
  unknownShape,
  listShape,
  objectShape,
  type ShapeCheck,
  textShape,
} from '../client/response-shape.ts'
import type { ApiClient } from '../client/api-client.ts'
import { openContextClient, type ContextOptions } from '../client/context-client.ts'
import { ApiRefusal } from '../client/api-refusal.ts'
import { printJson, printLine, printNote } from '../terminal/output.ts'

export interface InspectOptions extends ContextOptions {
  readonly output?: 'yaml' | 'json'
}

interface InspectedValue {
  /** Id of the controller or router. */
  readonly appId: string
  readonly name: string
  readonly value: Json
}

interface Inspection {
  readonly errors: readonly string[]
  readonly values: readonly InspectedValue[]
}

const inspectionShape = objectShape<Inspection>({
  errors: listShape(textShape),
  values: listShape(
    objectShape<InspectedValue>({
      appId: textShape,
      name: textShape,
      value: unknownShape as ShapeCheck<Json>,
    }),
  ),
})

/**
 * Prints the inspected values of all controllers and routers that match the pattern.
 * @throws {CommandFailure} exit 5 after printing, if a controller or router did not respond, or if
 * a router reported an error.
 */
export async function printInspection(
  pattern: string,
  names: readonly string[],
  options: InspectOptions,
): Promise<void> {
  const { requestedValuesMax } = inspectionLimits
  if (names.length > requestedValuesMax) {
    throw usageFailure(`expected at most ${requestedValuesMax} values, found ${names.length}`)
  }
  const { errors, values } = await inspectEach(openContextClient(options), pattern, names)
  if (options.json === true || options.output === 'json') printJson({ errors, values })
  else for (const one of values) printLine(inspectedText(one))
  if (values.length === 0) printNote('flotilla: no controller or router has such a value')
  if (errors.length === 0) return
  throw new CommandFailure(EXIT_UNREACHABLE, `incomplete: ${errors.join('; ')}`)
}

/**
 * Inspects through each controller. A router responds through each controller to which it is
 * connected; only the first response is used.
 */
async function inspectEach(
  client: ApiClient,
  pattern: string,
  names: readonly string[],
): Promise<Inspection> {
  const found = new Map<string, InspectedValue>()
  const errors = new Set<string>()
  const body = { appRegex: pattern, requestedValues: names }
  for (const origin of client.controllers) {
    const request = { method: 'POST', api: FABRIC_API_PATH, path: '/inspections', body } as const
    try {
      const sent = { ...request, origin, changesNothing: true, isBare: true }
      const { data } = await client.ask(sent, inspectionShape)
      for (const one of data.values) {
        const key = JSON.stringify([one.appId, one.name])
        if (!found.has(key)) found.set(key, one)
      }
      for (const error of data.errors) errors.add(error)
    } catch (error) {
      if (!(error instanceof CommandFailure) || error instanceof ApiRefusal) throw error
      errors.add(error.message)
    }
  }
  const values = [...found.values()].sort((a, b) => compare(keyOf(a), keyOf(b)))
  return { errors: [...errors], values }
}

function keyOf({ appId, name }: InspectedValue): string {
  return `${appId} ${name}`
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/**
 * A title line followed by the value. An object, also one that a string contains as JSON, is
 * printed as YAML.
 */
function inspectedText({ appId, name, value }: InspectedValue): string {
  const parsed = typeof value === 'string' ? (parseJsonOrNull(value) ?? value) : value
  const text = typeof parsed === 'object' && parsed !== null ? formatYaml(parsed) : String(parsed)
  return `# ${printableLine(appId)} ${printableLine(name)}\n${text.trimEnd()}\n`
}
