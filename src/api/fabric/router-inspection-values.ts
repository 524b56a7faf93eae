import type { RouterInspection } from '../../ports/router-inspections.ts'
import { isJsonObject } from '../../lib/text/json-value.ts'

type Members = Readonly<Record<string, unknown>>

/** A link in a router's response to an inspection. */
export interface InspectedLink {
  readonly id: string
  readonly peerRouterId: string
  readonly isDialed: boolean
  /**
   * `type source destination` of each socket, sorted; null if the router does not report its
   * sockets.
   */
  readonly sockets: readonly string[] | null
}

/** A circuit in a router's response to an inspection. */
interface InspectedCircuit {
  readonly controllerId: string
  /** Description of each destination, by address. */
  readonly destinations: Readonly<Record<string, string>>
}

/**
 * Circuits in a router's response to an inspection, grouped by the component of the router that
 * reports them.
 */
export interface InspectedCircuits {
  readonly forwarder: ReadonlyMap<string, InspectedCircuit>
  /** Number of circuits that the router has but did not include. */
  readonly omitted: number
  /** Circuits that the router's edge listeners report, and circuits that SDK clients report. */
  readonly edge: ReadonlyMap<string, InspectedCircuit>
  readonly clients: ReadonlyMap<string, InspectedCircuit>
}

/** Names of the inspection values that contain circuits. */
export const circuitInspectionNames = {
  forwarder: 'router-circuits',
  edge: 'router-edge-circuits',
  clients: 'router-sdk-circuits',
} as const

/** Maximum list items or object members that are read from a router's response. */
const INSPECTED_MAX = 65_536
const TEXT_CHARACTERS_MAX = 512
const DESTINATIONS_MAX = 16

/** @returns null if the router does not report its links. */
export function linksFromInspection({ values }: RouterInspection): readonly InspectedLink[] | null {
  const value = values.find(({ name }) => name === 'links')?.value
  if (!isJsonObject(value)) return null
  return listOf(value['links']).map((link) => {
    const { id, dest, dialed, connections } = link
    const sockets = Array.isArray(connections)
      ? listOf(connections)
          .map((socket) => [socket['Type'], socket['Source'], socket['Dest']].map(textOf).join(' '))
          .sort()
      : null
    return { id: textOf(id), peerRouterId: textOf(dest), isDialed: dialed === true, sockets }
  })
}

/** @returns null if the router does not report its circuits. */
export function circuitsFromInspection({ values }: RouterInspection): InspectedCircuits | null {
  const named = (wanted: string): unknown => values.find(({ name }) => name === wanted)?.value
  const forwarder = named(circuitInspectionNames.forwarder)
  if (!isJsonObject(forwarder)) return null
  const { omitted } = forwarder
  return {
    forwarder: circuitsOf(forwarder),
    omitted: typeof omitted === 'number' && omitted > 0 ? omitted : 0,
    edge: circuitsOf(named(circuitInspectionNames.edge)),
    clients: circuitsOf(named(circuitInspectionNames.clients)),
  }
}

/**
 * Circuits by circuit ID. For circuits of the router's clients, the name of the JSON member
 * combines connection ID and circuit ID, so the circuit ID comes from the member's value.
 */
function circuitsOf(value: unknown): ReadonlyMap<string, InspectedCircuit> {
  const circuits = new Map<string, InspectedCircuit>()
  if (!isJsonObject(value) || !isJsonObject(value['circuits'])) return circuits
  for (const [key, reported] of Object.entries(value['circuits']).slice(0, INSPECTED_MAX)) {
    if (!isJsonObject(reported)) continue
    const id = textOf(reported['circuitId']) || textOf(key)
    const destinations = isJsonObject(reported['destinations']) ? reported['destinations'] : {}
    circuits.set(id, {
      controllerId: textOf(reported['ctrlId']),
      destinations: Object.fromEntries(
        Object.entries(destinations)
          .slice(0, DESTINATIONS_MAX)
          .map(([address, what]) => [textOf(address), textOf(what)]),
      ),
    })
  }
  return circuits
}

function listOf(value: unknown): readonly Members[] {
  return Array.isArray(value) ? value.slice(0, INSPECTED_MAX).filter(isJsonObject) : []
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, TEXT_CHARACTERS_MAX) : ''
}
