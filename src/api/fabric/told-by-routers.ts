import type { RouterInspection } from '../../ports/router-inspections.ts'
import { isJsonObject } from '../../lib/text/json-value.ts'

type Members = Readonly<Record<string, unknown>>

/** A link in the answer of a router to an inspection. */
export interface ToldLink {
  readonly id: string
  readonly peerRouterId: string
  readonly isDialed: boolean
  /** `type source dest` of each socket, sorted; null: it does not say. */
  readonly sockets: readonly string[] | null
}

/** A circuit in the answer of a router to an inspection. */
export interface ToldCircuit {
  readonly controllerId: string
  /** Address to what stands there. */
  readonly destinations: Readonly<Record<string, string>>
}

export interface ToldCircuits {
  readonly forwarder: ReadonlyMap<string, ToldCircuit>
  /** Circuits that it has and does not show. */
  readonly omitted: number
  /** Circuits of its edge listeners, and those that clients tell of themselves. */
  readonly edge: ReadonlyMap<string, ToldCircuit>
  readonly clients: ReadonlyMap<string, ToldCircuit>
}

export const circuitValues = {
  forwarder: 'router-circuits',
  edge: 'router-edge-circuits',
  clients: 'router-sdk-circuits',
} as const

/** The first so many, of a list or of members, whatever a router sends. */
const TOLD_MAX = 65_536
const TEXT_CHARACTERS_MAX = 512
const DESTINATIONS_MAX = 16

/** @returns null when the router does not tell of its links. */
export function linksTold({ values }: RouterInspection): readonly ToldLink[] | null {
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

/** @returns null when the router does not tell of its circuits. */
export function circuitsTold({ values }: RouterInspection): ToldCircuits | null {
  const named = (wanted: string): unknown => values.find(({ name }) => name === wanted)?.value
  const forwarder = named(circuitValues.forwarder)
  if (!isJsonObject(forwarder)) return null
  const { omitted } = forwarder
  return {
    forwarder: circuitsOf(forwarder),
    omitted: typeof omitted === 'number' && omitted > 0 ? omitted : 0,
    edge: circuitsOf(named(circuitValues.edge)),
    clients: circuitsOf(named(circuitValues.clients)),
  }
}

/** A router names those of its clients by connection and circuit: the member has the circuit. */
function circuitsOf(value: unknown): ReadonlyMap<string, ToldCircuit> {
  const circuits = new Map<string, ToldCircuit>()
  if (!isJsonObject(value) || !isJsonObject(value['circuits'])) return circuits
  for (const [key, told] of Object.entries(value['circuits']).slice(0, TOLD_MAX)) {
    if (!isJsonObject(told)) continue
    const id = textOf(told['circuitId']) || textOf(key)
    const destinations = isJsonObject(told['destinations']) ? told['destinations'] : {}
    circuits.set(id, {
      controllerId: textOf(told['ctrlId']),
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
  return Array.isArray(value) ? value.slice(0, TOLD_MAX).filter(isJsonObject) : []
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, TEXT_CHARACTERS_MAX) : ''
}
