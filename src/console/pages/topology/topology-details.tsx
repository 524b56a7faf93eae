import type { ComponentChildren } from 'preact'

import { FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
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
  readonly target: TopologyTarget | null
  readonly onChoose: (target: TopologyTarget) => void
}

/** Details of the router or link that the user points at or has chosen. */
export function TopologyDetails({ graph, circuits, target, onChoose }: DetailsProps) {
  const { topology } = pageTexts
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
      ) : (
        <p class="panel-body soft small">{topology.pointAt}</p>
      )}
    </section>
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

interface Hosted {
  readonly service: string
  readonly serviceId: string
  /** Id of the identity that hosts the service; '' if the router itself hosts it. */
  readonly hostId: string
}

const HOSTED_MAX = 50

interface TerminatorRow {
  readonly id: string
  readonly hostId?: string
  readonly serviceId: string
  readonly service?: { readonly name?: string }
}

async function readHosted(routerId: string, signal: AbortSignal) {
  const filter = `router = ${quoteFilterText(routerId)}`
  const query = new URLSearchParams({ filter, limit: String(HOSTED_MAX) })
  const { body } = await consoleApiClient.ask({
    path: `${FABRIC_API_PATH}/terminators?${query}`,
    signal,
  })
  const { data, meta } = body as {
    readonly data: readonly TerminatorRow[]
    readonly meta: { readonly pagination: { readonly totalCount: number } }
  }
  const hosted = data.map(({ hostId = '', serviceId, service }): Hosted => {
    return { serviceId, service: service?.name ?? serviceId, hostId }
  })
  hosted.sort((a, b) => a.service.localeCompare(b.service, 'en', { numeric: true }))
  return { hosted, totalCount: meta.pagination.totalCount }
}

/** The services that are hosted at the router, with their hosts. */
function HostedServices({ routerId }: { readonly routerId: string }) {
  const { topology } = pageTexts
  const loaded = useLoadedData(`hosted/${routerId}`, (signal) => readHosted(routerId, signal))
  const { value: page } = loaded.data
  const names = useIdentityNames((page?.hosted ?? []).map(({ hostId }) => hostId))
  if (page === null) {
    return loaded.error.value === null ? <Skeleton /> : <FailureNotice error={loaded.error.value} />
  }
  return (
    <Part title={topology.hosted(page.totalCount)}>
      {page.hosted.map(({ service, serviceId, hostId }, at) => (
        <li key={at}>
          <a href={consolePath('services', serviceId)}>{visibleText(service)}</a>
          <span class="faint">
            {hostId === '' ? topology.byRouter : visibleText(names.get(hostId) ?? hostId)}
          </span>
        </li>
      ))}
      {page.totalCount > page.hosted.length ? (
        <li class="faint">{texts.picker.count(page.hosted.length, page.totalCount)}</li>
      ) : null}
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
