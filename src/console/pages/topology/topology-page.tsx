import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'

import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { sortByName } from '../../app/name-order.ts'
import { consolePath } from '../../app/navigation.ts'
import { PageHead } from '../../app/page-head.tsx'
import { Field } from '../../controls/field.tsx'
import { EmptyState, Notice, Skeleton } from '../../controls/status.tsx'
import { pageTexts } from '../../page-texts.ts'
import { texts } from '../../texts.ts'
import { CircuitPathLinks } from '../live/circuit-path-links.tsx'
import { ClientLink } from '../live/client-link.tsx'
import { type LiveDataRow, readFabricRows } from '../live/live-data.ts'
import { TopologyDetails } from './topology-details.tsx'
import { TopologyDrawing, type TopologyTarget } from './topology-drawing.tsx'
import {
  type DrawnCircuit,
  readCircuits,
  DRAWN_NODES_MAX,
  type Graph,
  buildGraph,
  neighborhood,
} from './graph.ts'
import { consoleApiClient } from '../../app/console-state.ts'
import { FABRIC_API_PATH } from '../../../client/cluster-client.ts'
import { RouterState, StateBadge } from '../records/record-state.tsx'
import { useIdentityNames } from '../records/record-names.ts'
import { visibleText } from '../../app/visible-text.ts'

const REFRESH_MS = 5_000

interface Topology {
  readonly graph: Graph
  readonly circuits: readonly DrawnCircuit[]
  readonly silent: readonly string[]
}

async function load(signal: AbortSignal): Promise<Topology> {
  const [routers, links, circuits] = await Promise.all([
    readRouters(signal),
    readFabricRows('links', signal),
    readFabricRows('circuits', signal),
  ])
  return {
    graph: buildGraph(routers, links.rows),
    circuits: readCircuits(circuits.rows),
    silent: [...new Set([...links.silent, ...circuits.silent])],
  }
}

/** Routers and the links between them, as a drawing and as tables. */
export function TopologyPage() {
  const { topology } = pageTexts
  const loaded = useLoadedData('topology', load, REFRESH_MS)
  const clients = useIdentityNames(
    (loaded.data.value?.circuits ?? []).map(({ clientId }) => clientId),
  )
  const chosen = useSignal('')
  const circuitId = useSignal('')
  const map = useRef<HTMLDivElement>(null)
  const pointed = useSignal<TopologyTarget | null>(null)
  const chosenTarget = useSignal<TopologyTarget | null>(null)
  const { value: shown } = loaded.data
  if (shown === null && loaded.error.value !== null) {
    return (
      <>
        <PageHead title={texts.pages.topology} />
        <Failure error={loaded.error.value} retry={loaded.reload} />
      </>
    )
  }
  const isLarge = (shown?.graph.nodes.length ?? 0) > DRAWN_NODES_MAX
  const circuit = shown?.circuits.find(({ id }) => id === circuitId.value) ?? null
  return (
    <>
      <PageHead title={texts.pages.topology} lead={topology.lead} />
      <div class="stack">
        <FailureNotice error={loaded.error.value} />
        {shown === null || shown.silent.length === 0 ? null : (
          <Notice tone="warn">{texts.live.silent(shown.silent)}</Notice>
        )}
        {shown === null ? (
          <div class="panel panel-body" aria-busy="true">
            <Skeleton />
          </div>
        ) : shown.graph.nodes.length === 0 ? (
          <div class="panel">
            <EmptyState icon="router" title={topology.none}>
              <p>{topology.noneWhat}</p>
            </EmptyState>
          </div>
        ) : (
          <>
            {isLarge ? (
              <Neighbourhood
                graph={shown.graph}
                chosen={chosen.value}
                onChoose={(id) => (chosen.value = id)}
              />
            ) : null}
            {isLarge && chosen.value === '' ? null : (
              <div class="map" ref={map}>
                <TopologyDrawing
                  graph={isLarge ? neighborhood(shown.graph, chosen.value) : shown.graph}
                  circuits={shown.circuits}
                  circuit={circuit}
                  pointed={pointed.value}
                  chosen={chosenTarget.value}
                  onPoint={(one) => (pointed.value = one)}
                  onChoose={(one) => (chosenTarget.value = one)}
                />
                <TopologyDetails
                  graph={shown.graph}
                  circuits={shown.circuits}
                  circuit={circuit}
                  clients={clients}
                  target={chosenTarget.value ?? pointed.value}
                  onChoose={(one) => (chosenTarget.value = one)}
                />
              </div>
            )}
            <LinkTable graph={shown.graph} />
            <Circuits
              circuits={shown.circuits}
              clients={clients}
              graph={shown.graph}
              chosen={circuitId.value}
              onChoose={(id) => {
                circuitId.value = id
                if (id === '') return
                // The path is in the drawing, and its routers are named in the details beside it.
                chosenTarget.value = null
                map.current?.scrollIntoView({ block: 'center' })
              }}
            />
          </>
        )}
      </div>
    </>
  )
}

function Neighbourhood(props: {
  readonly graph: Graph
  readonly chosen: string
  readonly onChoose: (id: string) => void
}) {
  const { topology } = pageTexts
  return (
    <Field label={topology.tooMany(props.graph.nodes.length)}>
      {(ids) => (
        <select
          {...ids}
          class="input"
          value={props.chosen}
          onChange={({ currentTarget }) => props.onChoose(currentTarget.value)}
        >
          <option value="">{topology.chooseRouter}</option>
          {props.graph.nodes.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

/** Number of circuits in the table; the page Sessions lists all of them. */
const CIRCUITS_SHOWN = 5

function Circuits(props: {
  readonly circuits: readonly DrawnCircuit[]
  readonly clients: ReadonlyMap<string, string>
  readonly graph: Graph
  readonly chosen: string
  readonly onChoose: (id: string) => void
}) {
  const { live } = texts
  const { topology } = pageTexts
  const { circuits, clients, graph, chosen, onChoose } = props
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]))
  // A stable order: circuits through most routers first, because their path is worth a look.
  const sorted = [...sortByName(circuits, ({ service, id }) => `${service} ${id}`)].sort(
    (a, b) => b.routers.length - a.routers.length,
  )
  return (
    <section class="panel" aria-labelledby="circuits">
      <div class="panel-head">
        <h2 id="circuits">{topology.circuits(circuits.length)}</h2>
        {circuits.length > CIRCUITS_SHOWN ? (
          <a class="small" href={consolePath('live', 'circuits')}>
            {topology.allCircuits(circuits.length)}
          </a>
        ) : null}
      </div>
      {circuits.length === 0 ? (
        <p class="panel-body soft small">{topology.noCircuits}</p>
      ) : (
        <div class="table-wrap" tabIndex={0} role="group" aria-label={texts.table}>
          <table class="table even">
            <thead>
              <tr>
                <th scope="col">{texts.access.service}</th>
                <th scope="col">{live.columns['clientId']}</th>
                <th scope="col" class="minor">
                  {live.columns['path']}
                </th>
                <th scope="col" class="actions">
                  <span class="visually-hidden">{texts.actions}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {sorted
                .slice(0, CIRCUITS_SHOWN)
                .map(({ id, service, serviceId, clientId, routers }) => (
                  <tr key={id} class={id === chosen ? 'at' : ''}>
                    <th scope="row">
                      <a class="clip" href={consolePath('services', serviceId)}>
                        {visibleText(service)}
                      </a>
                    </th>
                    <td>
                      <ClientLink id={clientId} name={clients.get(clientId)} />
                    </td>
                    <td class="minor">
                      <CircuitPathLinks
                        routers={routers.map((one) => ({
                          id: one,
                          name: nodes.get(one)?.name ?? '',
                          isOffline: nodes.get(one)?.isOnline === false,
                        }))}
                      />
                    </td>
                    <td class="actions">
                      <button
                        type="button"
                        class="button"
                        aria-pressed={id === chosen}
                        onClick={() => onChoose(id === chosen ? '' : id)}
                      >
                        {topology.showPath}
                        <span class="visually-hidden">
                          {' '}
                          {visibleText(`${service} ${clients.get(clientId) ?? ''}`)}
                        </span>
                      </button>
                    </td>
                  </tr>
                ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

/** The links of the drawing as a table. */
function LinkTable({ graph }: { readonly graph: Graph }) {
  const { live } = texts
  const { topology } = pageTexts
  const names = new Map(graph.nodes.map(({ id, name }) => [id, name]))
  return (
    <div class="columns">
      <section class="panel" aria-labelledby="link-table">
        <div class="panel-head">
          <h2 id="link-table">{topology.links}</h2>
        </div>
        {graph.links.length === 0 ? (
          <p class="panel-body soft small">{topology.noLinks}</p>
        ) : (
          <div class="table-wrap" tabIndex={0} role="group" aria-label={texts.table}>
            <table class="table">
              <thead>
                <tr>
                  <th scope="col">{topology.between}</th>
                  <th scope="col">{topology.state}</th>
                  <th scope="col" class="number">
                    {topology.latency}
                  </th>
                  <th scope="col" class="number">
                    {topology.cost}
                  </th>
                </tr>
              </thead>
              <tbody>
                {graph.links.map((link) => (
                  <tr key={link.id}>
                    <th scope="row">
                      {names.get(link.from)} – {names.get(link.to)}
                    </th>
                    <td>
                      <StateBadge state={link.isDown ? 'down' : 'up'} />
                    </td>
                    <td class="number">{live.milliseconds(link.latencyMs)}</td>
                    <td class="number">{link.cost.toLocaleString('en')}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      <section class="panel" aria-labelledby="router-table">
        <div class="panel-head">
          <h2 id="router-table">{topology.routers}</h2>
        </div>
        <div class="table-wrap" tabIndex={0} role="group" aria-label={texts.table}>
          <table class="table">
            <thead>
              <tr>
                <th scope="col">{topology.router}</th>
                <th scope="col">{topology.state}</th>
                <th scope="col" class="number">
                  {topology.linkCount}
                </th>
              </tr>
            </thead>
            <tbody>
              {sortByName(graph.nodes, ({ name }) => name).map(
                ({ id, name, isOnline, isEnrolled }) => (
                  <tr key={id}>
                    <th scope="row">
                      <a href={consolePath('routers', id)}>{name}</a>
                    </th>
                    <td>
                      <RouterState row={{ isOnline, isVerified: isEnrolled }} />
                    </td>
                    <td class="number">
                      {graph.links.filter(({ from, to }) => from === id || to === id).length}
                    </td>
                  </tr>
                ),
              )}
            </tbody>
          </table>
        </div>
      </section>
    </div>
  )
}

const PAGE = 500
const PAGES_MAX = 10

/** Routers, page by page; those after the last permitted page are missing. */
async function readRouters(signal: AbortSignal): Promise<readonly LiveDataRow[]> {
  const rows: LiveDataRow[] = []
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = new URLSearchParams({ limit: String(PAGE), offset: String(page * PAGE) })
    const { body } = await consoleApiClient.ask({
      path: `${FABRIC_API_PATH}/routers?${query}`,
      signal,
    })
    const { data } = body as { readonly data: readonly LiveDataRow[] }
    rows.push(...data)
    if (data.length < PAGE) break
  }
  return rows
}
