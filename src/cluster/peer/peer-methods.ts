import {
  AdmissionAnswerSchema,
  AdmissionCallSchema,
  AdmissionRequestSchema,
  DigestAnswerSchema,
  DigestRequestSchema,
  LeadershipTransferAnswerSchema,
  LeadershipTransferSchema,
  MemberChangeAnswerSchema,
  MemberChangeSchema,
  PieceRequestSchema,
  ReachAnswerSchema,
  ReachRequestSchema,
  StateOfferSchema,
  StateRequestSchema,
  TrafficSeriesRequestSchema,
  TrafficSeriesSchema,
  TrafficTotalsRequestSchema,
  TrafficTotalsSchema,
} from '../../../proto/gen/peer_pb.ts'
import { SnapshotChunkSchema } from '../../../proto/gen/mesh_pb.ts'

/**
 * All methods between controllers. Those with the prefix `membership.` run on the leader, except
 * `membership.reach`, which the leader calls on voters.
 */
export const peerMethods = {
  plan: {
    name: 'membership.plan',
    request: MemberChangeSchema,
    answer: MemberChangeAnswerSchema,
  },
  change: {
    name: 'membership.change',
    request: MemberChangeSchema,
    answer: MemberChangeAnswerSchema,
  },
  transfer: {
    name: 'membership.transfer',
    request: LeadershipTransferSchema,
    answer: LeadershipTransferAnswerSchema,
  },
  enterByLeader: {
    name: 'membership.enter',
    request: AdmissionCallSchema,
    answer: AdmissionAnswerSchema,
  },
  enter: { name: 'enter', request: AdmissionRequestSchema, answer: AdmissionAnswerSchema },
  reach: { name: 'membership.reach', request: ReachRequestSchema, answer: ReachAnswerSchema },
  digest: { name: 'state.digest', request: DigestRequestSchema, answer: DigestAnswerSchema },
  snapshot: { name: 'state.snapshot', request: StateRequestSchema, answer: StateOfferSchema },
  piece: { name: 'state.piece', request: PieceRequestSchema, answer: SnapshotChunkSchema },
  trafficTotals: {
    name: 'traffic.totals',
    request: TrafficTotalsRequestSchema,
    answer: TrafficTotalsSchema,
  },
  trafficSeries: {
    name: 'traffic.series',
    request: TrafficSeriesRequestSchema,
    answer: TrafficSeriesSchema,
  },
} as const
