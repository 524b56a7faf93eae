import { flag, text } from '../../entities/shapes.ts'
import type { JsonObject } from '../../lib/text/canonical-json.ts'

const integer = { type: 'integer' } as const
const number = { type: 'number' } as const

function closed(properties: JsonObject): JsonObject {
  return { type: 'object', properties, required: Object.keys(properties) }
}

/** The document of a node (src/ports/node-health.ts). */
export const nodeHealthSchema = closed({
  id: text,
  clusterId: text,
  generation: integer,
  version: text,
  startedAtMs: number,
  role: text,
  term: integer,
  leaderId: { type: ['string', 'null'] },
  leaderContactMs: number,
  commit: integer,
  applied: integer,
  persisted: integer,
  lagEntries: integer,
  lagMs: number,
  fsyncP99Ms: number,
  loopDelayP99Ms: closed({ main: number, raft: number }),
  members: {
    type: 'array',
    items: closed({
      id: text,
      voter: flag,
      role: text,
      connected: flag,
      lastContactMs: { type: ['number', 'null'] },
      commit: integer,
      applied: integer,
      lagEntries: integer,
      fsyncP99Ms: number,
      loopDelayP99Ms: number,
      clockOffsetMs: number,
    }),
  },
  voters: integer,
  votersConnected: integer,
  failureTolerance: integer,
  nextRisk: text,
  alarms: {
    type: 'array',
    items: closed({ code: text, text, sinceMs: number, isCritical: flag }),
  },
})
