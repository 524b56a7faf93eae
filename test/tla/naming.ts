import { createHash } from 'node:crypto'
import { fromBinary } from '@bufbuild/protobuf'
import {
  type Configuration as ConfigurationRecord,
  ConfigurationSchema,
} from '../../proto/gen/membership_pb.ts'
import { configurationFromRecord } from '../../src/raft/configuration.ts'
import type { Entry, NodeId } from '../../src/raft/types.ts'
import type { Server, TraceEntry, TraceMembers } from './trace-event.ts'

/** Short names for disks and the contents of entries. */
export class Naming {
  readonly #servers = new Map<string, Server>()
  readonly #names = new Map<Server, NodeId>()
  readonly #values = new Map<string, number>()

  get servers(): readonly (readonly [Server, string])[] {
    return [...this.#names]
  }

  server(id: NodeId, storeId: Uint8Array): Server {
    const key = `${id}/${Buffer.from(storeId).toString('hex')}`
    const known = this.#servers.get(key)
    if (known !== undefined) return known
    const earlier = [...this.#names.values()].filter((name) => name === id).length
    const server = `${id}/${earlier + 1}`
    this.#servers.set(key, server)
    this.#names.set(server, id)
    return server
  }

  members(record: ConfigurationRecord): TraceMembers {
    const { voters, outgoingVoters, learners } = configurationFromRecord(record)
    const disksOf = (ids: readonly NodeId[]): Server[] =>
      ids.map((id) => {
        const member = record.members.find((one) => one.id === id)
        return this.server(id, member?.storeId ?? new Uint8Array(0))
      })
    return {
      voters: disksOf(voters),
      outgoing: disksOf(outgoingVoters),
      learners: disksOf(learners),
    }
  }

  entry({ term, type, timeMs, data }: Entry): TraceEntry {
    const key = createHash('sha256').update(`${type}|${timeMs}|`).update(data).digest('hex')
    const value = this.#values.get(key) ?? this.#values.size + 1
    this.#values.set(key, value)
    if (type !== 'configuration') return [term, type, value]
    return [term, type, value, this.members(fromBinary(ConfigurationSchema, data))]
  }

  entries(entries: readonly Entry[]): TraceEntry[] {
    return entries.map((entry) => this.entry(entry))
  }
}
