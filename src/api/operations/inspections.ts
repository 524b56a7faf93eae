import { fieldProblem } from '../../lib/problems.ts'
import type { SchemaJudge } from '../../ports/schema-judge.ts'
import { bareAnswer } from '../answers/envelope.ts'
import type { Operation } from '../operation.ts'
import type { ApiParts } from '../parts.ts'
import { preferredLeaders } from '../duties/preferred-leader.ts'
import { inspectRequest, inspectResponse } from '../schemas/inspections.ts'
import type { ApiServices } from '../records/services.ts'
import { sharerOf } from '../records/sharer.ts'

interface InspectRequest {
  readonly appRegex: string
  readonly requestedValues: readonly string[]
}

type Values = Readonly<Record<string, () => unknown>>

/** What this controller tells of itself; neither records nor anything secret is among it. */
export function inspectionOperations(parts: ApiParts, services: ApiServices): Operation[] {
  const { cluster } = parts
  const values = valuesOf(parts, services)
  return [
    {
      operationId: 'inspect',
      summary: 'Tells values of this controller by their names, when its id matches',
      tag: 'inspections',
      apis: ['fabric'],
      permission: 'ops.read',
      method: 'POST',
      path: '/inspections',
      body: { schema: inspectRequest, isRequired: true },
      success: 200,
      response: { kind: 'bare', schema: inspectResponse },
      refusals: [400, 401, 429, 503],
      handle: async (call) => {
        const { appRegex, requestedValues } = call.body as InspectRequest
        const isMeant = await isMatch(parts.schemas, sharerOf(call), appRegex, cluster.selfId)
        const told = await inspect(cluster.selfId, isMeant ? requestedValues : [], values)
        return bareAnswer(JSON.stringify(told))
      },
    },
  ]
}

async function inspect(appId: string, names: readonly string[], values: Values): Promise<object> {
  const errors: string[] = []
  const told: { appId: string; name: string; value: unknown }[] = []
  for (const name of new Set(names)) {
    const read = Object.hasOwn(values, name) ? values[name] : undefined
    if (read === undefined) errors.push(`${appId} has no value ${JSON.stringify(name)}`)
    else told.push({ appId, name, value: await read() })
  }
  return { errors, success: errors.length === 0, values: told }
}

function valuesOf(parts: ApiParts, { metrics }: ApiServices): Values {
  const { cluster, state, version, instanceId, limits, bindings, clock } = parts
  const startedMs = clock.monotonicMs()
  return {
    /** What of the configuration the API goes by. */
    config: () => ({ bindings, limits }),
    /** null while nothing is known of it. */
    'cluster-status': () => parts.health().node ?? null,
    /** The members as this controller sees them, under the names that the API family gives them here. */
    'connected-peers': () => {
      const views = cluster.members()
      const preferred = preferredLeaders(views)
      return views.map(({ id, address, voter, leader, version, connected }) => ({
        ...{ id, version, addr: address, isVoter: voter, isLeader: leader, isConnected: connected },
        isPreferredLeader: preferred.has(id),
        isSelf: id === cluster.selfId,
      }))
    },
    /** Two controllers on one timeline with one index have the same state. */
    'data-model-index': () => ({
      timeline: `${cluster.clusterId}:${cluster.generation}`,
      index: state.appliedIndex,
    }),
    metrics: () => metrics.text(),
    runtime: () => ({
      ...{ version, instanceId },
      clusterId: cluster.clusterId,
      generation: cluster.generation,
      appliedIndex: state.appliedIndex,
      upMs: Math.round(clock.monotonicMs() - startedMs),
      memoryBytes: process.memoryUsage(),
    }),
  }
}

/**
 * Expressions of callers are judged where one without end can be ended, in turn with what others have judged.
 * @throws {Problem} COULD_NOT_VALIDATE on `appRegex`; SERVER_TOO_MANY_REQUESTS.
 */
async function isMatch(
  judge: SchemaJudge,
  caller: string,
  pattern: string,
  id: string,
): Promise<boolean> {
  const schema = { type: 'object', properties: { id: { type: 'string', pattern } } } as const
  const fault = await judge.judgeData(schema, { id }, caller)
  if (fault === null) return true
  if (fault.field === 'id') return false
  const what = fault.field === 'schema' ? 'is no regular expression' : 'could not be judged in time'
  throw fieldProblem('appRegex', what, pattern)
}
