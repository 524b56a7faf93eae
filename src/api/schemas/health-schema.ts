import { flag, text, wholeObject } from '../../entities/shapes.ts'
import { integer } from './envelope.ts'

const number = { type: 'number' } as const

/** The document of a node (src/ports/node-health.ts). */
export const nodeHealthSchema = wholeObject({
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
  loopDelayP99Ms: wholeObject({ main: number, raft: number }),
  members: {
    type: 'array',
    items: wholeObject({
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
    items: wholeObject({ code: text, text, sinceMs: number, isCritical: flag }),
  },
})
