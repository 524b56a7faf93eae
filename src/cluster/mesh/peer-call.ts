import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, credentials, Metadata } from '@grpc/grpc-js'

import { CallRequestSchema, CallResponseSchema } from '../../../proto/gen/mesh_pb.ts'
import { Problem } from '../../lib/problems.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { leafControllerId, parseCertificate } from '../../pki/certificate.ts'
import type { NodeId } from '../../raft/types.ts'
import {
  grpcClientOptions,
  type MeshIdentity,
  meshSecureContext,
  meshService,
} from './mesh-service.ts'
import { grpcFailureReason } from './mesh-event-logger.ts'
import { toPeerCallProblem } from '../peer/peer-rpc.ts'

interface PeerAnswer {
  /** Id of the responding controller, from its certificate. */
  readonly calleeId: NodeId
  readonly payload: Uint8Array
}

/**
 * Sends one request to the controller at an address, outside of links, for controllers to which
 * members open no links: new ones, and members that the others refuse. The callee must have a
 * controller's certificate of the same CA and trust domain; the caller must check whether the
 * callee's id is acceptable.
 * @param address host:port of the mesh.
 * @throws {Problem} the error that the callee returned, or PEER_UNREACHABLE with the reason.
 */
export async function callPeerOnce(options: {
  readonly address: string
  readonly identity: MeshIdentity
  readonly trustDomain: string
  readonly method: string
  readonly payload: Uint8Array
  readonly timeoutMs: number
}): Promise<PeerAnswer> {
  const { address, method, payload } = options
  let calleeId: NodeId | null = null
  const client = new Client(
    address,
    credentials.createFromSecureContext(meshSecureContext(options.identity), {
      checkServerIdentity: (_host, { raw }) => {
        try {
          calleeId = leafControllerId(parseCertificate(raw), options.trustDomain)
          return undefined
        } catch (error) {
          return error instanceof Error ? error : new Error('its certificate names no controller')
        }
      },
    }),
    grpcClientOptions,
  )
  const { path, requestSerialize, responseDeserialize } = meshService.call
  const request = Buffer.from(
    toBinary(CallRequestSchema, create(CallRequestSchema, { method, payload })),
  )
  const deadline = Date.now() + options.timeoutMs
  try {
    const bytes = await new Promise<Buffer>((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        new Metadata(),
        { deadline },
        (error, answer) => {
          if (error === null && answer !== undefined) resolve(answer)
          else reject(error ?? new Error('no response'))
        },
      )
    })
    const response = fromBinary(CallResponseSchema, bytes)
    if (response.failure !== undefined) throw toPeerCallProblem(response.failure)
    return { calleeId: calleeId ?? '', payload: response.payload }
  } catch (error) {
    if (error instanceof Problem) throw error
    const message = errorMessage(error)
    const reason = grpcFailureReason(message.slice(0, 300), address)
    throw new Problem('PEER_UNREACHABLE', { detail: `${address}: ${reason}` })
  } finally {
    client.close()
  }
}
