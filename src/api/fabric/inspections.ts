import { readProcessMemory } from '../../lib/runtime/thread-memory.ts'
import { fieldProblem } from '../../lib/problems.ts'
import type { SchemaValidator } from '../schemas/schema-validator.ts'
import { responseWithoutEnvelope } from '../http/responses/envelope.ts'
import { type Operation, operationWithBody } from '../http/operation.ts'
import { preferredLeaders } from '../cluster/controller-view.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { StateView } from '../../ports/state-view.ts'
import type { LiveTable, LiveChannel } from '../../ports/live-table.ts'
import type { RouterInspections } from '../../ports/router-inspections.ts'
import type { Clock } from '../../lib/clock.ts'
import type { ApiLimits } from '../limits.ts'
import type { ApiVersionsKey, HealthReport, VersionInfo } from '../api-deps.ts'
import type { ControllerMetrics } from '../metrics/metrics.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import {
  booleanSchema,
  textSchema,
  closedObjectSchema,
  arraySchema,
} from '../../entities/response-schemas.ts'
import { objectSchema } from '../schemas/typed-schema.ts'

export const inspectionLimits = {
  /**
   * Maximum characters of `appRegex` in an inspection request; above that: 400
   * COULD_NOT_VALIDATE.
   */
  regexCharactersMax: 256,
  /** Maximum values that one inspection requests; above that: 400 COULD_NOT_VALIDATE. */
  requestedValuesMax: 16,
  /**
   * Maximum characters of the name of one requested value; above that: 400 COULD_NOT_VALIDATE.
   */
  nameCharactersMax: 128,
} as const

const inspectRequest = objectSchema(
  'inspectRequest',
  {
    appRegex: {
      type: 'string',
      maxLength: inspectionLimits.regexCharactersMax,
      description:
        'ECMAScript regular expression that matches a part of the id of a controller, or of the id or name of a router',
    },
    requestedValues: {
      type: 'array',
      maxItems: inspectionLimits.requestedValuesMax,
      items: { type: 'string', maxLength: inspectionLimits.nameCharactersMax },
      description:
        'names; of a controller: config, cluster-config, cluster-status, connected-peers, connected-routers, data-model-index, identity-connection-statuses, metrics, router-data-model, router-data-model-index, router-messaging, runtime, stackdump, terminator-costs; routers have others. Unknown names are ignored',
    },
  },
  ['appRegex', 'requestedValues'],
)

const inspectResponse: NamedSchema = {
  name: 'inspectResponse',
  schema: closedObjectSchema({
    errors: { type: 'array', items: textSchema, description: 'errors of routers' },
    success: booleanSchema,
    values: arraySchema(
      closedObjectSchema({
        appId: { ...textSchema, description: 'id of the controller or router' },
        name: textSchema,
        value: { description: 'an object; for metrics, text in the Prometheus format' },
      }),
    ),
  }),
}

interface InspectionOperationsDeps {
  readonly cluster: ClusterView
  readonly state: StateView
  readonly schemas: SchemaValidator
  readonly channels: LiveTable<LiveChannel>
  readonly routerInspections: RouterInspections
  readonly clock: Clock
  readonly limits: ApiLimits
  readonly version: VersionInfo
  readonly instanceId: string
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
  readonly health: () => HealthReport
  readonly metrics: ControllerMetrics
}

/** Maximum connected routers that one request compares with `appRegex`. */
const ROUTERS_MAX = 1000

type Values = Readonly<Record<string, () => unknown>>

/** Operations that show the internal state of this controller and its routers, without secrets. */
export function inspectionOperations(deps: InspectionOperationsDeps): Operation[] {
  const { cluster } = deps
  const values = valuesOf(deps)
  return [
    operationWithBody({
      operationId: 'inspect',
      summary: 'Inspect named values of this controller and its routers',
      tag: 'inspections',
      apis: ['fabric'],
      permission: 'ops.read',
      method: 'POST',
      path: '/inspections',
      body: { schema: inspectRequest, isRequired: true },
      success: 200,
      response: { kind: 'bare', schema: inspectResponse },
      handle: async (call, { appRegex, requestedValues }) => {
        const isMeant = (id: string): Promise<boolean> =>
          isMatch(deps.schemas, call.sharer, appRegex, id)
        const names = new Set(requestedValues)
        const isOwn = await isMeant(cluster.selfId)
        const own = await inspect(cluster.selfId, isOwn ? names : [], values)
        const { errors, inspected } = await ofRouters(deps, isMeant, [...names])
        // Ignores an unknown name: controllers and routers know different names, and OpenZiti's CLI
        // shows values only if there are no errors.
        const answer = { errors, success: errors.length === 0, values: [...own, ...inspected] }
        return responseWithoutEnvelope(JSON.stringify(answer))
      },
    }),
  ]
}

interface InspectedValue {
  readonly appId: string
  readonly name: string
  readonly value: unknown
}

async function inspect(
  appId: string,
  names: Iterable<string>,
  values: Values,
): Promise<readonly InspectedValue[]> {
  const inspected: InspectedValue[] = []
  for (const name of names) {
    const read = Object.hasOwn(values, name) ? values[name] : undefined
    if (read !== undefined) inspected.push({ appId, name, value: await read() })
  }
  return inspected
}

async function ofRouters(
  { channels, routerInspections }: InspectionOperationsDeps,
  isMeant: (id: string) => Promise<boolean>,
  names: readonly string[],
): Promise<{ readonly errors: string[]; readonly inspected: readonly InspectedValue[] }> {
  const ids: string[] = []
  for (const { id, name } of channels.list().slice(0, ROUTERS_MAX)) {
    if ((await isMeant(id)) || (await isMeant(name))) ids.push(id)
  }
  const errors: string[] = []
  const inspected: InspectedValue[] = []
  await Promise.all(
    ids.map(async (appId) => {
      const found = await routerInspections.inspect(appId, names)
      errors.push(...found.errors)
      inspected.push(...found.values.map(({ name, value }) => ({ appId, name, value })))
    }),
  )
  return { errors, inspected }
}

function valuesOf(deps: InspectionOperationsDeps): Values {
  const { metrics } = deps
  const { cluster, state, version, instanceId, limits, bindings, clock } = deps
  const startedMs = clock.monotonicMs()
  return {
    ...deps.routerInspections.own,
    /** Effective configuration of the API. */
    config: () => ({ bindings, limits }),
    /** null until the node has reported its state. */
    'cluster-status': () => deps.health().node ?? null,
    /** The members as this controller sees them, in OpenZiti's format. */
    'connected-peers': () => {
      const views = cluster.members()
      const preferred = preferredLeaders(views)
      return views.map(({ id, address, voter, leader, version, connected }) => ({
        id,
        version,
        addr: address,
        isVoter: voter,
        isLeader: leader,
        isConnected: connected,
        isPreferredLeader: preferred.has(id),
        isSelf: id === cluster.selfId,
      }))
    },
    /** Two controllers with the same timeline and the same index have the same state. */
    'data-model-index': () => ({
      timeline: `${cluster.clusterId}:${cluster.generation}`,
      index: state.appliedIndex,
    }),
    metrics: () => metrics.text(),
    /** Number of pending operations by type, because Node.js keeps no stacks of them. */
    stackdump: () => activeResources(process.getActiveResourcesInfo()),
    runtime: () => ({
      version,
      instanceId,
      clusterId: cluster.clusterId,
      generation: cluster.generation,
      appliedIndex: state.appliedIndex,
      upMs: Math.round(clock.monotonicMs() - startedMs),
      memoryBytes: readProcessMemory(),
    }),
  }
}

function activeResources(names: readonly string[]): string {
  const counts = Map.groupBy(names, (name) => name)
  return [...counts]
    .map(([name, { length }]) => `${name}: ${length}\n`)
    .sort()
    .join('')
}

/**
 * Evaluates a regular expression from the caller in a worker that can be terminated, because an
 * expression may run very long. The evaluations are shared fairly among callers.
 * @throws {Problem} COULD_NOT_VALIDATE on `appRegex`; SERVER_TOO_MANY_REQUESTS, TIMEOUT.
 */
async function isMatch(
  judge: SchemaValidator,
  caller: string,
  pattern: string,
  id: string,
): Promise<boolean> {
  const schema = { type: 'object', properties: { id: { type: 'string', pattern } } } as const
  // @guard costly-texts--pattern
  const fault = await judge.validateData(schema, { id }, caller)
  if (fault === null) return true
  if (fault.field === 'id') return false
  const what =
    fault.field === 'schema' ? 'is not a regular expression' : 'could not be evaluated in time'
  throw fieldProblem('appRegex', what, pattern)
}
