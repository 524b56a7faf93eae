import type { LiveChannel } from '../../../src/ports/live-table.ts'
import {
  createCircuitTable,
  type CircuitTable,
} from '../../../src/fabric/circuits/circuit-table.ts'
import { LinkTable } from '../../../src/fabric/links/link-table.ts'
import { LiveRowTable } from '../../../src/fabric/live-row-table.ts'

/** The live tables of a controller; the test plays the routers. */
export interface LiveTables {
  readonly links: LinkTable
  readonly circuits: CircuitTable
  readonly channels: LiveRowTable<LiveChannel, LiveChannel>
}

export function liveTables(owner: string): LiveTables {
  return {
    links: new LinkTable({
      owner,
      isConnected: () => true,
      isBarred: () => false,
      sendGone: () => undefined,
      onGone: () => undefined,
    }),
    circuits: createCircuitTable(owner, () => undefined),
    channels: new LiveRowTable<LiveChannel, LiveChannel>({
      owner,
      rowsMax: 10,
      viewOf: (row) => row,
      onRemoved: () => undefined,
    }),
  }
}
