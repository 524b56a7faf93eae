import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'

import { FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { sortByName } from '../../app/name-order.ts'
import { consolePath } from '../../app/navigation.ts'
import { consoleApiClient } from '../../app/console-state.ts'
import { visibleText } from '../../app/visible-text.ts'
import { FABRIC_API_PATH } from '../../../client/cluster-client.ts'
import { Skeleton } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { RouterState, StateBadge } from '../records/record-state.tsx'
import { pageTexts } from '../../page-texts.ts'
import { texts } from '../../texts.ts'
import { quoteFilterText } from '../records/filters.ts'
import { useIdentityNames } from '../records/record-names.ts'
import type { TopologyTarget } from './topology-drawing.tsx'
import {
  type DrawnCircuit,
  circuitsOverLink,
  circuitsThroughRouter,
  type Graph,
  type GraphLink,
  type GraphNode,
} from './graph.ts'

interface DetailsProps {
  readonly graph: Graph
  readonly circuits: readonly DrawnCircuit[]
  /** The circuit whose path the drawing shows; null: none. */
  readonly circuit: DrawnCircuit | null
  /** Names of identities, by ID. */
  readonly clients: ReadonlyMap<string, string>
  readonly target: TopologyTarget | null
  readonly onChoose: (target: TopologyTarget) => void
}

/** Details of the router or link that the user points at or has chosen. */
export function TopologyDetails(props: DetailsProps) {
  const { topology } = pageTexts
  const { graph, circuits, circuit, clients, target, onChoose } = props
  const router = target?.kind === 'router' ? graph.nodes.find(({ id }) => id === target.id) : null
  const link = target?.kind === 'link' ? graph.links.find(({ id }) => id === target.id) : null
  return (
    <section class="panel details" aria-label={topology.details} aria-live="polite">
      {router ? (
        <RouterDetails
          graph={graph}
          router={router}
          circuits={circuitsThroughRouter(circuits, router.id)}
          onChoose={onChoose}
        />
      ) : link ? (
        <LinkDetails graph={graph} link={link} circuits={circuitsOverLink(circuits, link)} />
      ) : circuit === null ? (
        <Overview graph={graph} onChoose={onChoose} />
      ) : (
        <PathDetails graph={graph} circuit={circuit} client={clients.get(circuit.clientId) ?? ''} />
      )}
    </section>
  )
}

/** The routers that are offline, and the slowest link. */
function Overview({ graph, onChoose }: Pick<DetailsProps, 'graph' | 'onChoose'>) {
  const { live } = texts
  const { topology } = pageTexts
  const names = namesOf(graph)
  const enrolled = sortByName(graph.nodes, ({ name }) => name).filter(
    ({ isEnrolled }) => isEnrolled,
  )
  const offline = enrolled.filter(({ isOnline }) => !isOnline)
  const [slowest] = graph.links
    .filter(({ isDown }) => !isDown)
    .sort((a, b) => b.latencyMs - a.latencyMs)
  return (
    <div class="panel-body details-body">
      <h2 class="visually-hidden">{topology.details}</h2>
      <Part title={topology.offlineOf(offline.length, enrolled.length)}>
        {offline.map(({ id, name, since }) => (
          <li key={id}>
            <button
              type="button"
              class="link-button"
              onClick={() => onChoose({ kind: 'router', id })}
            >
              {visibleText(name)}
            </button>
            {since === null ? null : (
              <span class="faint">
                <Time at={since} />
              </span>
            )}
          </li>
        ))}
      </Part>
      {slowest === undefined ? null : (
        <Part title={topology.slowest}>
          <li>
            <button
              type="button"
              class="link-button"
              onClick={() => onChoose({ kind: 'link', id: slowest.id })}
            >
              {visibleText(names.get(slowest.from) ?? '')} –{' '}
              {visibleText(names.get(slowest.to) ?? '')}
            </button>
            <span class="faint">{live.milliseconds(slowest.latencyMs)}</span>
          </li>
        </Part>
      )}
      <p class="soft small">{topology.pointAt}</p>
    </div>
  )
}

/** The routers of a circuit's path, in order. */
function PathDetails(props: {
  readonly graph: Graph
  readonly circuit: DrawnCircuit
  readonly client: string
}) {
  const { topology } = pageTexts
  const { graph, circuit, client } = props
  const names = namesOf(graph)
  return (
    <>
      <div class="panel-head">
        <h2>{visibleText(topology.pathOf(circuit.service, client))}</h2>
      </div>
      <div class="panel-body details-body">
        <Part title={topology.hops(circuit.routers.length)}>
          {circuit.routers.map((id, at) => (
            <li key={id}>
              <a href={consolePath('edge-routers', id)}>
                {at + 1}. {visibleText(names.get(id) ?? topology.unknownRouter)}
              </a>
            </li>
          ))}
        </Part>
      </div>
    </>
  )
}

function RouterDetails(props: {
  readonly graph: Graph
  readonly router: GraphNode
  readonly circuits: readonly DrawnCircuit[]
  readonly onChoose: (target: TopologyTarget) => void
}) {
  const { live } = texts
  const { topology } = pageTexts
  const { graph, router, circuits, onChoose } = props
  const names = namesOf(graph)
  const links = graph.links.filter(({ from, to }) => from === router.id || to === router.id)
  return (
    <>
      <div class="panel-head">
        <h2>
          <a href={consolePath('edge-routers', router.id)}>{visibleText(router.name)}</a>
        </h2>
        <RouterState row={{ isOnline: router.isOnline, isVerified: router.isEnrolled }} />
      </div>
      <div class="panel-body details-body">
        {router.since === null ? null : (
          <p class="soft small">
            {router.isOnline ? topology.onlineSince : topology.offlineSince}{' '}
            <Time at={router.since} />
          </p>
        )}
        <Part title={topology.linksOf(links.length)}>
          {links.map((link) => (
            <li key={link.id}>
              <button
                type="button"
                class="link-button"
                onClick={() => onChoose({ kind: 'link', id: link.id })}
              >
                {visibleText(names.get(link.from === router.id ? link.to : link.from) ?? '')}
              </button>
              <span class="faint">
                {link.isDown ? live.linkStates.down : live.milliseconds(link.latencyMs)}
              </span>
            </li>
          ))}
        </Part>
        <ServicesOf circuits={circuits} />
        <HostedServices key={router.id} routerId={router.id} />
      </div>
    </>
  )
}

function LinkDetails(props: {
  readonly graph: Graph
  readonly link: GraphLink
  readonly circuits: readonly DrawnCircuit[]
}) {
  const { live } = texts
  const { topology } = pageTexts
  const { graph, link, circuits } = props
  const names = namesOf(graph)
  return (
    <>
      <div class="panel-head">
        <h2>
          {visibleText(names.get(link.from) ?? '')} – {visibleText(names.get(link.to) ?? '')}
        </h2>
        <StateBadge state={link.isDown ? 'down' : 'up'} />
      </div>
      <div class="panel-body details-body">
        <dl class="facts">
          <div class="fact">
            <dt>{topology.latency}</dt>
            <dd>{live.milliseconds(link.latencyMs)}</dd>
          </div>
          <div class="fact">
            <dt>{topology.cost}</dt>
            <dd>{link.cost.toLocaleString('en')}</dd>
          </div>
        </dl>
        <ServicesOf circuits={circuits} />
      </div>
    </>
  )
}

/** Number of circuits by service, most first. */
function ServicesOf({ circuits }: { readonly circuits: readonly DrawnCircuit[] }) {
  const { topology } = pageTexts
  const counts = new Map<string, number>()
  for (const { service } of circuits) counts.set(service, (counts.get(service) ?? 0) + 1)
  const rows = [...counts].sort(([a, x], [b, y]) => y - x || a.localeCompare(b, 'en'))
  return (
    <Part title={topology.circuits(circuits.length)}>
      {rows.map(([service, amount]) => (
        <li key={service}>
          <span>{visibleText(service)}</span>
          <span class="faint">{amount.toLocaleString('en')}</span>
        </li>
      ))}
    </Part>
  )
}

/** A service that is hosted at a router. */
interface Hosted {
  readonly service: string
  readonly serviceId: string
  /** Ids of the identities that host the service; '' if the router itself hosts it. */
  readonly hostIds: Set<string>
}

/** Maximum terminators that are read. */
const TERMINATORS_MAX = 500
/** Number of services that are listed at first. */
const SERVICES_SHOWN = 8

interface TerminatorRow {
  readonly id: string
  readonly hostId?: string
  readonly serviceId: string
  readonly service?: { readonly name?: string }
}

async function readHosted(routerId: string, signal: AbortSignal) {
  const filter = `router = ${quoteFilterText(routerId)}`
  const query = new URLSearchParams({ filter, limit: String(TERMINATORS_MAX) })
  const { body } = await consoleApiClient.ask({
    path: `${FABRIC_API_PATH}/terminators?${query}`,
    signal,
  })
  const { data } = body as { readonly data: readonly TerminatorRow[] }
  const hosted = new Map<string, Hosted>()
  for (const { hostId = '', serviceId, service } of data) {
    const known = hosted.get(serviceId)
    if (known === undefined) {
      const name = service?.name ?? serviceId
      hosted.set(serviceId, { serviceId, service: name, hostIds: new Set([hostId]) })
    } else known.hostIds.add(hostId)
  }
  return sortByName([...hosted.values()], ({ service }) => service)
}

/** The services that are hosted at the router, with their hosts. */
function HostedServices({ routerId }: { readonly routerId: string }) {
  const { topology } = pageTexts
  const loaded = useLoadedData(`hosted/${routerId}`, (signal) => readHosted(routerId, signal))
  const isWhole = useSignal(false)
  const { value: hosted } = loaded.data
  const names = useIdentityNames((hosted ?? []).flatMap(({ hostIds }) => [...hostIds]))
  if (hosted === null) {
    return loaded.error.value === null ? <Skeleton /> : <FailureNotice error={loaded.error.value} />
  }
  return (
    <Part title={topology.hosted(hosted.length)}>
      {hosted.slice(0, isWhole.value ? undefined : SERVICES_SHOWN).map((one) => (
        <li key={one.serviceId}>
          <a href={consolePath('services', one.serviceId)}>{visibleText(one.service)}</a>
          <span class="faint">
            {sortByName(
              [...one.hostIds].map((id) => visibleText(names.get(id) ?? topology.byRouter)),
              String,
            ).join(', ')}
          </span>
        </li>
      ))}
      {isWhole.value || hosted.length <= SERVICES_SHOWN ? null : (
        <li>
          <button type="button" class="link-button" onClick={() => (isWhole.value = true)}>
            {texts.record.showAll(hosted.length, hosted.length)}
          </button>
        </li>
      )}
    </Part>
  )
}

function Part(props: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <h3>{props.title}</h3>
      <ul class="pairs">{props.children}</ul>
    </div>
  )
}

function namesOf({ nodes }: Graph): ReadonlyMap<string, string> {
  return new Map(nodes.map(({ id, name }) => [id, name]))
}
