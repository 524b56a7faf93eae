import { credentials, Client, type ServiceError } from '@grpc/grpc-js'

const length = (bytes: Uint8Array): Buffer => {
  const parts: number[] = []
  for (let rest = bytes.length; ; rest >>>= 7) {
    if (rest < 128) {
      parts.push(rest)
      return Buffer.from(parts)
    }
    parts.push((rest & 127) | 128)
  }
}

/**
 * Encodes `{bytes 1 = key, bytes 2 = value}`: the fields of etcd's PutRequest that a put needs, and
 * also the request of the gRPC server in grpc-front.ts.
 */
export function encodePut(key: Uint8Array, value: Uint8Array): Buffer {
  return Buffer.concat([
    Buffer.from([0x0a]),
    length(key),
    key,
    Buffer.from([0x12]),
    length(value),
    value,
  ])
}

/**
 * A client with minimal cost: one unary call at a time on its own channel; it does not decode the
 * response.
 */
export class ThinClient {
  readonly #client: Client
  readonly #method: string

  constructor(address: string, method: string) {
    this.#client = new Client(address, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
    })
    this.#method = method
  }

  put(request: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest<Buffer, Buffer>(
        this.#method,
        (message) => message,
        (bytes) => bytes,
        request,
        (error: ServiceError | null, answer) =>
          error === null ? resolve(answer ?? Buffer.alloc(0)) : reject(error),
      )
    })
  }

  close(): void {
    this.#client.close()
  }
}
