import type { Identity } from '../../entities/kinds/identity.ts'
import type { Router } from '../../entities/kinds/router.ts'
import type { Terminator } from '../../entities/kinds/terminator.ts'
import type { KindName, RecordOf } from '../../entities/kind-records.ts'
import { assert } from '../../lib/assert.ts'
import type { ProcessorShare } from '../../lib/bounds/processor-share.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { fieldProblem, Problem } from '../../lib/problems.ts'
import { canCallOperation } from '../../auth/principal/permissions.ts'
import {
  actorForPrincipal,
  type Caller,
  writeOriginForActor,
} from '../../auth/principal/principal.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type {
  LiveTable,
  LiveChannel,
  LiveCircuit,
  LiveLink,
  LiveLinks,
} from '../../ports/live-table.ts'
import type {
  HostWithWrongTerminatorCount,
  NetworkValidations,
  RouterCircuitFindings,
  RouterLinkFindings,
  TerminatorValidationRequest,
  ValidatedCircuit,
  ValidatedLink,
  ValidatedTerminator,
  Validation,
  ValidationFinding,
} from '../../ports/network-validations.ts'
import type {
  RouterInspection,
  RouterInspections,
  ReportedTerminator,
} from '../../ports/router-inspections.ts'
import type { ServiceLogger } from '../../ports/logger.ts'
import type { StateView } from '../../ports/state-view.ts'
import { backgroundWriteRequest, type ProposalWriter } from '../http/proposal-writer.ts'
import {
  circuitsFromInspection,
  type InspectedCircuits,
  circuitInspectionNames,
  linksFromInspection,
  type InspectedLink,
} from './router-inspection-values.ts'

export interface ValidationDeps {
  readonly state: StateView
  readonly cluster: Pick<ClusterView, 'selfId'>
  readonly links: Pick<LiveLinks, 'list'>
  readonly circuits: Pick<LiveTable<LiveCircuit>, 'list'>
  readonly channels: Pick<LiveTable<LiveChannel>, 'get'>
  readonly routerInspections: RouterInspections
  readonly processor: Pick<ProcessorShare, 'finish' | 'run'>
  readonly writer: Pick<ProposalWriter, 'deleteEntity'>
  readonly logger: ServiceLogger
}

export const validationLimits = {
  /** Maximum records that one validation checks; a larger validation is refused. */
  validatedMax: 100_000,
  /** Maximum terminators in one query to a router. */
  terminatorsAskedAtOnceMax: 50,
  /** Maximum queries to routers that one validation sends at the same time. */
  routersAskedAtOnceMax: 8,
} as const

const { validatedMax, terminatorsAskedAtOnceMax, routersAskedAtOnceMax } = validationLimits
/**
 * The operation whose permission a client needs: a write, because a validation can repair records.
 */
const wanted = { api: 'fabric', method: 'POST' } as const
/** Runs work on the main thread, when fair scheduling of processor time selects the caller. */
type InTurns = <T>(work: () => T) => Promise<T>

/** Destination that OpenZiti routers report for a circuit that ends at an edge client. */
const EDGE_DESTINATION = 'xg-edge-fwd'

/**
 * Validations that one caller may run. To validate this controller's links and circuits, the caller
 * needs the permission to read events. Filters and the validation of terminators are only for
 * administrators, because they reveal which records exist.
 */
export function createNetworkValidations(deps: ValidationDeps, caller: Caller): NetworkValidations {
  const { state } = deps
  const isAdmin = (): boolean => canCallOperation(caller, 'admin', wanted)
  // Searches the tables only when fair scheduling selects the caller, because the tables may be
  // large and are searched once for each router.
  const inTurns: InTurns = (work) =>
    new Promise((resolve, reject) => {
      deps.processor.run(caller.identity.id, () => {
        try {
          resolve(work())
        } catch (error) {
          reject(error as Error)
        }
      })
    })
  const found = async <K extends KindName>(
    kind: K,
    filter: string,
    field: string,
  ): Promise<readonly RecordOf<K>[]> => {
    // @guard validations-of-others--filters
    if (filter !== '' && !isAdmin()) throw unauthorized('filters are for administrators')
    const listing = state.listing({ of: 'kind', entity: kind }, { filter, limit: -1 })
    assert(listing !== null, 'only a sub-list may have no parent')
    const { records } = await deps.processor.finish(caller.identity.id, listing)
    if (records.length <= validatedMax) return records as readonly RecordOf<K>[]
    const what = `means ${records.length} records, and at most ${validatedMax} are validated at once`
    throw fieldProblem(field, what)
  }
  const ofRouters = async (
    filter: string,
    one: (router: Router) => Promise<ValidationFinding>,
  ): Promise<Validation> => {
    const routers = await found('router', filter, 'filter')
    const findings = eachInOrder(routers, routersAskedAtOnceMax, one)
    return { count: routers.length, findings: untilFault(findings, deps.logger) }
  }
  return {
    terminators: async (asked) => {
      // @guard validations-of-others--terminators
      if (!isAdmin()) throw unauthorized('terminators are validated by administrators')
      const terminators = await found('terminator', asked.filter, 'terminatorsFilter')
      const identities =
        asked.perHost === 0
          ? []
          : await found('identity', asked.identitiesFilter || 'not isAdmin', 'identitiesFilter')
      const miscounted = [
        ...miscountedByService(terminators, asked.perServiceAndHost),
        ...miscountedHosts(terminators, identities, asked.perHost),
      ]
      const batches = batchesOf(terminators)
      const validated = eachInOrder(batches, routersAskedAtOnceMax, (batch) =>
        validateBatch(deps, caller, batch, asked.isFixing),
      )
      const findings = untilFault(inTurn(validated, miscounted), deps.logger)
      return { count: terminators.length, findings }
    },
    links: (filter) => ofRouters(filter, (router) => validateLinks(deps, router, inTurns)),
    circuits: (filter) => ofRouters(filter, (router) => validateCircuits(deps, router, inTurns)),
  }
}

function unauthorized(detail: string): Problem {
  return new Problem('UNAUTHORIZED', { detail })
}

/**
 * Ends the sequence at an unexpected error, which is logged. The client then receives fewer
 * findings than the start message announced.
 */
async function* untilFault(
  findings: AsyncIterable<ValidationFinding>,
  logger: ServiceLogger,
): AsyncGenerator<ValidationFinding, void> {
  try {
    yield* findings
  } catch (error) {
    logger.error({ err: error }, 'unhandled error in a validation')
  }
}

/**
 * Runs a limited number of tasks at the same time, and yields their results in the order of the
 * items.
 */
async function* eachInOrder<T, R>(
  items: readonly T[],
  atOnceMax: number,
  one: (item: T) => Promise<R>,
): AsyncGenerator<R, void> {
  const running: Promise<R>[] = []
  for (const item of items) {
    running.push(one(item))
    const first = running.length < atOnceMax ? undefined : running.shift()
    if (first !== undefined) yield await first
  }
  for (const rest of running) yield await rest
}

async function* inTurn(
  batches: AsyncIterable<readonly ValidatedTerminator[]>,
  hosts: readonly HostWithWrongTerminatorCount[],
): AsyncGenerator<ValidationFinding, void> {
  for await (const batch of batches) yield* batch
  yield* hosts
}

/** Batches of terminators; all terminators in a batch belong to the same router. */
function batchesOf(terminators: readonly Terminator[]): readonly (readonly Terminator[])[] {
  const byRouter = Map.groupBy(terminators, ({ routerId }) => routerId)
  const batches: (readonly Terminator[])[] = []
  for (const all of byRouter.values()) {
    for (let at = 0; at < all.length; at += terminatorsAskedAtOnceMax) {
      batches.push(all.slice(at, at + terminatorsAskedAtOnceMax))
    }
  }
  return batches
}

async function validateBatch(
  deps: ValidationDeps,
  caller: Caller,
  batch: readonly Terminator[],
  isFixing: boolean,
): Promise<readonly ValidatedTerminator[]> {
  const { cluster, routerInspections, state } = deps
  const routerId = batch[0]?.routerId ?? ''
  const asked = batch.map(({ id, binding, address }) => ({ id, binding, address }))
  const standings = await routerInspections.terminators(routerId, asked, isFixing)
  const silent =
    standings === null
      ? `the router is not connected to ${cluster.selfId}`
      : 'the router did not say in time'
  return await Promise.all(
    batch.map(async (terminator) => {
      const standing = standings?.get(terminator.id) ?? null
      const shown = shownTerminator(state, terminator)
      if (standing === null) {
        return { ...shown, state: 'unknown' as const, isFixed: false, detail: silent }
      }
      if (standing.state === 'valid' || !isFixing) return { ...shown, ...standing, isFixed: false }
      return { ...shown, ...standing, ...(await removed(deps, caller, terminator, standing)) }
    }),
  )
}

/**
 * Deletes a terminator that its router reports as invalid. Another request may already have deleted
 * it.
 */
async function removed(
  { writer, state }: ValidationDeps,
  caller: Caller,
  { id }: Terminator,
  { detail }: ReportedTerminator,
): Promise<Pick<ValidatedTerminator, 'isFixed' | 'detail'>> {
  const actor = actorForPrincipal(
    caller.kind === 'session' ? { ...caller, permission: 'admin' } : caller,
  )
  try {
    await writer.deleteEntity(
      writeOriginForActor(backgroundWriteRequest(), actor),
      'terminator',
      id,
    )
    return { isFixed: true, detail }
  } catch (error) {
    if (state.get('terminator', id) === undefined) return { isFixed: true, detail }
    const reason = `it could not be removed: ${errorMessage(error)}`
    return { isFixed: false, detail: detail === '' ? reason : `${detail}; ${reason}` }
  }
}

function shownTerminator(state: StateView, terminator: Terminator) {
  const { id, serviceId, routerId, binding, address, hostId, createdAt } = terminator
  return {
    kind: 'terminator',
    terminatorId: id,
    serviceId,
    serviceName: nameOf(state, 'service', serviceId),
    routerId,
    routerName: nameOf(state, 'router', routerId),
    binding,
    address,
    hostId,
    createdAt: new Date(createdAt).toISOString(),
  } as const
}

/** The name of a record; its id if the record no longer exists. */
function nameOf(state: StateView, kind: 'router' | 'service', id: string): string {
  return state.get(kind, id)?.name ?? id
}

function* miscountedByService(
  terminators: readonly Terminator[],
  expected: TerminatorValidationRequest['perServiceAndHost'],
): Iterable<HostWithWrongTerminatorCount> {
  if (expected === 0) return
  const byPair = Map.groupBy(terminators, ({ serviceId, hostId }) => `${serviceId}/${hostId}`)
  for (const [first, ...more] of byPair.values()) {
    if (first === undefined || more.length + 1 === expected) continue
    const message = countMessage(expected, more.length + 1)
    yield { kind: 'host', identityId: first.hostId, serviceId: first.serviceId, message }
  }
}

function* miscountedHosts(
  terminators: readonly Terminator[],
  identities: readonly Identity[],
  expected: TerminatorValidationRequest['perHost'],
): Iterable<HostWithWrongTerminatorCount> {
  if (expected === 0) return
  const byHost = Map.groupBy(terminators, ({ hostId }) => hostId)
  for (const { id } of identities) {
    const count = byHost.get(id)?.length ?? 0
    if (count === expected) continue
    yield { kind: 'host', identityId: id, serviceId: '', message: countMessage(expected, count) }
  }
}

function countMessage(expected: number, count: number): string {
  return `expected ${expected} terminators, but had ${count}`
}

/** @returns the response of the router, or the reason why there is none. */
async function askRouter(
  { channels, cluster, routerInspections }: ValidationDeps,
  { id }: Router,
  names: readonly string[],
): Promise<RouterInspection | string> {
  if (channels.get(id) === undefined) return `the router is not connected to ${cluster.selfId}`
  return await routerInspections.inspect(id, names)
}

async function validateLinks(
  deps: ValidationDeps,
  router: Router,
  inTurns: InTurns,
): Promise<RouterLinkFindings> {
  const of = { kind: 'links', routerId: router.id, routerName: router.name } as const
  const inspected = await askRouter(deps, router, ['links'])
  if (typeof inspected === 'string') return { ...of, fault: inspected, links: [] }
  const reported = linksFromInspection(inspected)
  if (reported === null) return { ...of, fault: silenceOf(inspected, 'links'), links: [] }
  return { ...of, fault: null, links: await inTurns(() => comparedLinks(deps, router, reported)) }
}

function comparedLinks(
  deps: ValidationDeps,
  router: Router,
  reported: readonly InspectedLink[],
): readonly ValidatedLink[] {
  const known = new Map(
    deps.links
      .list()
      .filter(({ sourceRouterId, destRouterId }) =>
        [sourceRouterId, destRouterId].includes(router.id),
      )
      .map((link) => [link.id, link]),
  )
  const isConnected = (id: string): boolean => deps.channels.get(id) !== undefined
  const links = reported.map((link) => comparedLink(link, known.get(link.id), isConnected))
  for (const { id } of reported) known.delete(id)
  for (const link of known.values()) {
    const isDialed = link.sourceRouterId === router.id
    const peerRouterId = isDialed ? link.destRouterId : link.sourceRouterId
    links.push({
      linkId: link.id,
      isKnown: true,
      isThere: false,
      peerRouterId,
      isPeerConnected: isConnected(peerRouterId),
      isDialed,
      isValid: false,
      messages: [],
    })
  }
  return links
}

function comparedLink(
  { id, peerRouterId, isDialed, sockets }: InspectedLink,
  known: LiveLink | undefined,
  isConnected: (routerId: string) => boolean,
): ValidatedLink {
  const isPeerConnected = isConnected(peerRouterId)
  // Compares the stored sockets only with the report of the dialing router, because they come from
  // that router.
  const differing =
    known === undefined || !isDialed || sockets === null ? [] : differingSockets(known, sockets)
  return {
    linkId: id,
    isKnown: known !== undefined,
    isThere: true,
    peerRouterId,
    isPeerConnected,
    isDialed,
    // A link that this controller does not know is still valid if the router at its other end is
    // not connected to this controller.
    isValid: known === undefined ? !isPeerConnected : isPeerConnected && differing.length === 0,
    messages: differing,
  }
}

function differingSockets(
  { connections }: LiveLink,
  reported: readonly string[],
): readonly string[] {
  const known = connections
    .map(({ type, sourceAddress, destAddress }) => `${type} ${sourceAddress} ${destAddress}`)
    .sort()
  // Ignores additional sockets in the router's report, because a controller stores only the first
  // few sockets of a link.
  if (known.length < reported.length && known.every((socket) => reported.includes(socket)))
    return []
  return known.join('\n') === reported.join('\n')
    ? []
    : [`the router has the sockets [${reported.join(', ')}], the controller [${known.join(', ')}]`]
}

async function validateCircuits(
  deps: ValidationDeps,
  router: Router,
  inTurns: InTurns,
): Promise<RouterCircuitFindings> {
  const of = { kind: 'circuits', routerId: router.id, routerName: router.name } as const
  const inspected = await askRouter(deps, router, Object.values(circuitInspectionNames))
  if (typeof inspected === 'string') return { ...of, fault: inspected, circuits: [] }
  const reported = circuitsFromInspection(inspected)
  if (reported === null) return { ...of, fault: silenceOf(inspected, 'circuits'), circuits: [] }
  const { omitted, forwarder } = reported
  const fault =
    omitted === 0
      ? null
      : `it shows ${forwarder.size} circuits and has ${forwarder.size + omitted}; those that it does not show were not compared`
  const circuits = await inTurns(() => comparedCircuits(deps, router.id, reported))
  return { ...of, fault, circuits }
}

function comparedCircuits(
  { circuits, cluster }: ValidationDeps,
  routerId: string,
  reported: InspectedCircuits,
): readonly ValidatedCircuit[] {
  const { forwarder, edge, clients, omitted } = reported
  const known = new Set<string>()
  const shown = new Set<string>()
  for (const { id, routerIds } of circuits.list()) if (routerIds.includes(routerId)) known.add(id)
  for (const id of known) if (omitted === 0 || forwarder.has(id)) shown.add(id)
  for (const those of [forwarder, edge, clients]) {
    for (const [id, { controllerId }] of those) if (controllerId === cluster.selfId) shown.add(id)
  }
  return Array.from(shown, (circuitId) => {
    const destinations = forwarder.get(circuitId)?.destinations ?? {}
    const isAtClient = Object.values(destinations).includes(EDGE_DESTINATION)
    return {
      circuitId,
      isMissingInController: !known.has(circuitId),
      isMissingInForwarder: !forwarder.has(circuitId),
      isMissingInEdge: isAtClient && !edge.has(circuitId),
      isMissingInClient: isAtClient && !clients.has(circuitId),
      destinations,
    }
  })
}

function silenceOf({ errors }: RouterInspection, what: string): string {
  return errors.length > 0 ? errors.join(', ') : `the router does not report its ${what}`
}
