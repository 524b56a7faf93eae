import { createSecureContext } from 'node:tls'

import { Client, credentials, type ServiceError, type status as Status } from '@grpc/grpc-js'

import { type MeshRefusal, readMeshRefusal } from '../../src/cluster/mesh/mesh-refusal.ts'
import { type MeshIdentity, meshService } from '../../src/cluster/mesh/mesh-service.ts'

export interface End {
  readonly code: Status
  readonly details: string
  /** Number of frames that were received before the end. */
  readonly frames: number
  readonly refusal: MeshRefusal | null
}

export interface Attack {
  readonly port: number
  readonly caPem: string
  readonly identity: MeshIdentity | null
  readonly frames: readonly Uint8Array[]
  readonly method?: 'raft' | 'forward'
}

/** Connects to a mesh as a peer does, sends the frames, and waits for the end of the stream. */
export async function attackMesh(attack: Attack): Promise<End> {
  const { port, caPem, identity, frames, method = 'raft' } = attack
  const context = createSecureContext({
    ca: caPem,
    ...(identity === null ? {} : { cert: identity.certificatePem, key: identity.privateKeyPem }),
  })
  const client = new Client(
    `127.0.0.1:${port}`,
    credentials.createFromSecureContext(context, { checkServerIdentity: () => undefined }),
    {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.max_send_message_length': -1,
      'grpc.ssl_target_name_override': 'mesh.flotilla',
    },
  )
  const { path, requestSerialize, responseDeserialize } = meshService[method]
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
  let received = 0
  call.on('data', () => (received += 1))
  try {
    return await new Promise<End>((resolve) => {
      call.on('error', ({ code, details, metadata }: ServiceError) =>
        resolve({ code, details, frames: received, refusal: readMeshRefusal(metadata) }),
      )
      for (const frame of frames) call.write(Buffer.from(frame))
    })
  } finally {
    client.close()
  }
}
