import type { ForwardFrame, Hello } from '../../proto/gen/mesh_pb.ts'
import type { SimulatedMesh } from './simulated-mesh.ts'

/**
 * Streams from one controller to another: a Raft stream in one direction, and a forwarding stream
 * with answers.
 */
export interface Link {
  readonly caller: SimulatedMesh
  readonly callee: SimulatedMesh
  readonly callerHello: Hello
  /** Nothing arrives on the link anymore. */
  isOver: boolean
  /** The caller closed the link; data that was already sent still arrives for a while. */
  isDraining: boolean
  /** A frame was lost; both ends will notice. */
  isBreaking: boolean
  queuedBytes: number
  /** Earliest arrival of the next frame per direction, ms, because frames keep their order. */
  forwardMs: number
  answerMs: number
}

export type Forwarded = ForwardFrame['frame']
