import { loadavg } from 'node:os'
import { getHeapStatistics } from 'node:v8'

import { readProcessMemory } from '../../lib/runtime/thread-memory.ts'
import { detailResponse } from '../http/responses/envelope.ts'
import type { Operation } from '../http/operation.ts'
import type { ApiLimits } from '../limits.ts'
import type { HealthReport, VersionInfo } from '../api-deps.ts'
import type { ConsensusStats } from '../../ports/stats.ts'
import type { ControllerMetrics } from '../metrics/metrics.ts'
import type { NamedSchema } from '../../entities/operations.ts'
import { textSchema, closedObjectSchema } from '../../entities/response-schemas.ts'

/** Unstable output for operators and for support; the format may differ between releases. */
const anything = { type: ['object', 'null'], additionalProperties: true } as const

const debugFacts: NamedSchema = {
  name: 'clusterDebugFacts',
  schema: closedObjectSchema({
    version: anything,
    limits: anything,
    node: anything,
    vitals: anything,
    process: anything,
    metrics: { ...textSchema, description: 'in the Prometheus text format' },
  }),
}

interface DebugOperationsDeps {
  readonly limits: ApiLimits
  readonly version: VersionInfo
  readonly health: () => HealthReport
  readonly vitals?: () => ConsensusStats
  readonly metrics: ControllerMetrics
}

/** State of a running controller, for a debug bundle. */
interface DebugFacts {
  readonly version: DebugOperationsDeps['version']
  readonly limits: DebugOperationsDeps['limits']
  /** State of consensus, members and alarms. */
  readonly node: unknown
  /** State of log, disk, mesh and threads. */
  readonly vitals: unknown
  readonly process: unknown
  /** Metrics in the Prometheus text format. */
  readonly metrics: string
}

/**
 * Operation that returns the data of this process for a debug bundle in one response: numbers, ids
 * and addresses, but no secrets.
 */
export function debugOperations(deps: DebugOperationsDeps): Operation[] {
  return [
    {
      operationId: 'clusterDebug',
      summary: 'Get the debug data of this controller: versions, state, limits, metrics',
      tag: 'cluster',
      apis: ['fabric'],
      method: 'GET',
      path: '/cluster/debug',
      permission: 'admin',
      success: 200,
      response: { kind: 'detail', schema: debugFacts },
      needsNoState: true,
      handle: async () => detailResponse(await debugFactsOf(deps)),
    },
  ]
}

async function debugFactsOf({
  version,
  limits,
  health,
  vitals,
  metrics,
}: DebugOperationsDeps): Promise<DebugFacts> {
  return {
    version,
    limits,
    node: health().node ?? null,
    vitals: vitals?.() ?? null,
    process: {
      pid: process.pid,
      node: process.version,
      uptimeSeconds: Math.round(process.uptime()),
      memory: readProcessMemory(),
      heap: getHeapStatistics(),
      load: loadavg(),
      resources: process.resourceUsage(),
      handles: countsOf(process.getActiveResourcesInfo()),
    },
    metrics: await metrics.text(),
  }
}

function countsOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
