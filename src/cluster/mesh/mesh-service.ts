import { createSecureContext, type SecureContext } from 'node:tls'

import type { ChannelOptions, MethodDefinition } from '@grpc/grpc-js'

import { ENTRY_BODY_BYTES_MAX } from '../../raft/entry-codec.ts'

/** Maximum frame in both directions: the largest entry plus its envelope. */
export const MESH_FRAME_BYTES_MAX = ENTRY_BODY_BYTES_MAX + 64 * 1024

/**
 * HTTP/2 window of a stream. A batch of entries fits into it, unless a single entry is larger, so
 * that a batch takes one round trip.
 */
export const MESH_STREAM_WINDOW_BYTES = 4 * 1024 * 1024

/**
 * This member's leaf with its chain, its key, and the CA certificates for verifying peers; all PEM.
 */
export interface MeshIdentity {
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly caPem: string
}

/**
 * The mesh encodes and decodes frames itself, to count their bytes and to handle malformed ones.
 */
type FrameMethod = MethodDefinition<Buffer, Buffer>

function frameMethod(name: string, isStream: boolean): FrameMethod {
  const asIs = (bytes: Buffer): Buffer => bytes
  return {
    path: `/flotilla.mesh.v1.Mesh/${name}`,
    requestStream: isStream,
    responseStream: isStream,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  }
}

export const meshService = {
  raft: frameMethod('Raft', true),
  forward: frameMethod('Forward', true),
  call: frameMethod('Call', false),
} as const

const bothEnds: ChannelOptions = {
  'grpc.max_receive_message_length': MESH_FRAME_BYTES_MAX,
  'grpc.max_send_message_length': MESH_FRAME_BYTES_MAX,
  'grpc.enable_channelz': 0,
}

/** The dialing side keeps the connection alive; the server only closes dead connections. */
export const grpcServerOptions: ChannelOptions = {
  ...bothEnds,
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
}

/** A dead connection is closed within three seconds. */
export const grpcClientOptions: ChannelOptions = {
  ...bothEnds,
  'grpc.keepalive_time_ms': 1_500,
  'grpc.keepalive_timeout_ms': 1_500,
  'grpc.keepalive_permit_without_calls': 1,
  // Each link has its own connection, so that the authentication of one link does not count for
  // another.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_http_proxy': 0,
  // The client sends this TLS server name instead of the host, which may be an IP address and is
  // not verified.
  'grpc.ssl_target_name_override': 'mesh.flotilla',
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.initial_reconnect_backoff_ms': 50,
  'grpc.max_reconnect_backoff_ms': 1000,
  'grpc-node.flow_control_window': MESH_STREAM_WINDOW_BYTES,
}

/**
 * TLS 1.3 only: it has no renegotiation and no static key exchange, and it encrypts the client
 * certificate.
 */
export function meshSecureContext(identity: MeshIdentity): SecureContext {
  return createSecureContext({ ...tlsContextOptions(identity), minVersion: 'TLSv1.3' })
}

export function tlsContextOptions(identity: MeshIdentity): {
  ca: string
  cert: string
  key: string
} {
  return { ca: identity.caPem, cert: identity.certificatePem, key: identity.privateKeyPem }
}
