import type { ClusterStatus } from '../../api/cluster/cluster-status.ts'
import { CommandFailure, EXIT_DENIED, EXIT_USAGE } from '../../controller/command-failure.ts'
import { printableLine, printableValue } from '../../lib/text/terminal-text.ts'
import { clusterOperationRequest, openClusterConnection } from '../client/connection.ts'
import { createContextClient, requireLoggedIn } from '../client/context-client.ts'
import { findContext, readContexts } from '../client/context-file.ts'
import { clusterStatusShape } from '../client/cluster-shapes.ts'
import { findFailureCause } from '../terminal/exit-codes.ts'
import { printJson, printLine } from '../terminal/output.ts'
import type { ClusterOptions } from './commands.ts'

/** States of a monitoring plugin, by their exit code. */
export const healthStates = ['OK', 'WARNING', 'CRITICAL', 'UNKNOWN'] as const
export type HealthState = (typeof healthStates)[number]

const ANSWER_MS = 5000

interface Observed {
  /** One status from each controller that responded. */
  readonly statuses: readonly ClusterStatus[]
  /** Why the other controllers did not respond. */
  readonly faults: readonly string[]
  /**
   * True if the statuses come from one controller, which also reports the members that it can
   * reach.
   */
  readonly isOneView: boolean
}

export interface ClusterHealth {
  readonly state: HealthState
  /** Reasons for the state, the most severe first; one sentence if the state is OK. */
  readonly reasons: readonly string[]
  readonly controllers: number
  readonly answering: number
  readonly failureTolerance: number
  readonly alarms: readonly string[]
}

/**
 * Prints the health of the whole cluster in the format of a monitoring plugin, and sets the exit
 * code. If no controller reports its status, the state is CRITICAL; if the check is used wrongly or
 * denied, UNKNOWN.
 */
export async function showHealth(options: ClusterOptions): Promise<void> {
  const health = await observe(options).then(evaluateClusterHealth, unknownHealth)
  process.exitCode = healthStates.indexOf(health.state)
  if (options.json === true) printJson(health)
  else printLine(healthText(printableValue(health)))
}

/**
 * With `--config` or `--url`, one controller reports the whole cluster; with a context, the command
 * queries each controller.
 */
async function observe(options: ClusterOptions): Promise<Observed> {
  if (options.config !== undefined || options.url !== undefined) {
    const ask = openClusterConnection(options)
    const status = (await ask('status', {}, ANSWER_MS)) as ClusterStatus
    return { statuses: [status], faults: [], isOneView: true }
  }
  const { name, context } = findContext(readContexts(), options.context)
  requireLoggedIn(name, context)
  const client = createContextClient(name, context, { isImpatient: true })
  const { path } = clusterOperationRequest('status')
  const asked = await Promise.all(
    client.controllers.map(async (origin) => {
      const request = { method: 'GET', api: '', path, origin, timeoutMs: ANSWER_MS } as const
      return await client.ask(request, clusterStatusShape).then(
        ({ data }) => data,
        (error: unknown) => faultOf(origin, error),
      )
    }),
  )
  return {
    statuses: asked.filter((one) => typeof one !== 'string'),
    faults: asked.filter((one) => typeof one === 'string'),
    isOneView: false,
  }
}

/**
 * Why a controller did not respond with its status.
 * @throws {CommandFailure} if the session is missing or lacks the permission, because that is not a
 * fault of the controller.
 */
function faultOf(origin: string, error: unknown): string {
  if (!(error instanceof CommandFailure)) throw error
  if (findFailureCause(error).exitCode === EXIT_DENIED) throw error
  return error.message.startsWith(origin) ? error.message : `${origin}: ${error.message}`
}

function unknownHealth(error: unknown): ClusterHealth {
  if (!(error instanceof CommandFailure)) throw error
  const { exitCode } = findFailureCause(error)
  const state = exitCode === EXIT_DENIED || exitCode === EXIT_USAGE ? 'UNKNOWN' : 'CRITICAL'
  return {
    state,
    reasons: [error.message],
    controllers: 0,
    answering: 0,
    failureTolerance: -1,
    alarms: [],
  }
}

export function evaluateClusterHealth({ statuses, faults, isOneView }: Observed): ClusterHealth {
  const ids = new Set(statuses.flatMap(({ members }) => members.map(({ id }) => id)))
  const answering = new Set(
    isOneView ? statuses.flatMap(reachedMembers) : statuses.map(({ selfId }) => selfId),
  )
  const silent = [...ids].filter((id) => !answering.has(id)).sort()
  const leaders = new Set(statuses.flatMap(({ leaderId }) => leaderId ?? []))
  const led = statuses.filter(({ leaderId }) => leaderId !== null)
  const judged = bestInformed(led)
  // It is enough that one controller sees a majority. If the leader sees none, it may be cut off
  // alone; the other controllers then elect a new leader.
  const hasMajority = led.some(({ failureTolerance }) => failureTolerance >= 0)
  const alarms = new Map(
    statuses.flatMap((status) => status.alarms.map((alarm) => [alarm.code, alarm] as const)),
  )
  const critical = [
    ...(statuses.length === 0 ? ['no controller answers'] : []),
    ...(statuses.length > 0 && !hasMajority ? ['no leader: writes wait'] : []),
    ...[...alarms.values()].filter(({ isCritical }) => isCritical).map(alarmText),
  ]
  const warnings = [
    ...silent.map((id) => `${id} does not answer`),
    ...failing(statuses).map((id) => `${id} does not serve`),
    ...withoutState(judged, silent),
    ...(!hasMajority || alarms.has('NO_QUORUM_SPARE') ? [] : toleranceWarning(judged)),
    ...(leaders.size > 1 ? [`controllers name different leaders: ${[...leaders].join(', ')}`] : []),
    ...[...alarms.values()].filter(({ isCritical }) => !isCritical).map(alarmText),
    ...faults,
  ]
  const state = critical.length > 0 ? 'CRITICAL' : warnings.length > 0 ? 'WARNING' : 'OK'
  const well = `${answering.size} of ${ids.size} controllers answer, leader ${[...leaders].join()}, ${judged?.nextRisk ?? ''}`
  return {
    state,
    reasons: state === 'OK' ? [well] : [...critical, ...warnings],
    controllers: ids.size,
    answering: answering.size,
    failureTolerance: judged?.failureTolerance ?? -1,
    alarms: [...alarms.keys()].sort(),
  }
}

/**
 * The status that shows how many voters may fail: that of the leader, because only its connections
 * count for writes. If the leader did not respond, the most cautious one.
 */
function bestInformed(led: readonly ClusterStatus[]): ClusterStatus | null {
  const cautious = led.toSorted((a, b) => a.failureTolerance - b.failureTolerance)
  return cautious.find(({ selfId, leaderId }) => selfId === leaderId) ?? cautious[0] ?? null
}

function toleranceWarning(status: ClusterStatus | null): readonly string[] {
  if (status === null) return []
  const { failureTolerance, failureToleranceMax = failureTolerance, nextRisk } = status
  if (failureTolerance >= failureToleranceMax) return []
  return [`failure tolerance ${failureTolerance} instead of ${failureToleranceMax}: ${nextRisk}`]
}

function reachedMembers({ members }: ClusterStatus): readonly string[] {
  return members.filter(({ role }) => role !== 'unknown').map(({ id }) => id)
}

/**
 * Members that answer and have no state, although the cluster has one: usually, the other
 * controllers cannot connect to them.
 */
function withoutState(status: ClusterStatus | null, silent: readonly string[]): readonly string[] {
  const members = status?.members ?? []
  if (!members.some(({ applied }) => applied > 0)) return []
  return members
    .filter(({ id, applied, role }) => applied === 0 && role !== 'unknown' && !silent.includes(id))
    .map(
      ({ id, address }) =>
        `${id} has not received the state; check that the other controllers reach it at ${address}`,
    )
}

function failing(statuses: readonly ClusterStatus[]): readonly string[] {
  const found = statuses.flatMap(({ members }) => members.filter(({ isFailing }) => isFailing))
  return [...new Set(found.map(({ id }) => id))].sort()
}

function alarmText({ code, text }: ClusterStatus['alarms'][number]): string {
  return `${code}: ${text}`
}

/** `STATE: reasons | performance data`, on one line. */
export function healthText(health: ClusterHealth): string {
  const { state, reasons, controllers, answering, failureTolerance, alarms } = health
  const data = [
    `controllers=${controllers}`,
    `answering=${answering}`,
    `tolerance=${failureTolerance}`,
    `alarms=${alarms.length}`,
  ]
  const said = printableLine(reasons.join('; '), 2000).replaceAll('|', '/')
  return `${state}: ${said} | ${data.join(' ')}`
}
