import type { ForwardFrame, Hello } from '../../proto/gen/mesh_pb.ts'
import type { SimulatedMesh } from './simulated-mesh.ts'

/** What a controller has dialled to another: a Raft stream one way, and a forwarding stream with its answers. */
export interface Link {
  readonly caller: SimulatedMesh
  readonly callee: SimulatedMesh
  readonly callerHello: Hello
  /** Nothing arrives on it any more. */
  isOver: boolean
  /** Let go by the caller: what was handed over still arrives, for a while. */
  isDraining: boolean
  /** Something was lost on the way: both ends will notice. */
  isBreaking: boolean
  queuedBytes: number
  /** Frames of a stream keep their order: none arrives before these times, ms. */
  forwardMs: number
  answerMs: number
}

export type Forwarded = ForwardFrame['frame']
