import { type BoltTree } from './bolt-writer.ts'

// Values as OpenZiti's boltz stores them (controller/storage/boltz/typed_bucket.go): a byte for the
// type, then the value.

export function boltzBoolean(value: boolean): Buffer {
  return Buffer.from([1, value ? 1 : 0])
}

export function boltzInt32(value: number): Buffer {
  const bytes = Buffer.alloc(5, 2)
  bytes.writeInt32LE(value, 1)
  return bytes
}

export function boltzInt64(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(9, 3)
  bytes.writeBigInt64LE(BigInt(value), 1)
  return bytes
}

export function boltzFloat(value: number): Buffer {
  const bytes = Buffer.alloc(9, 4)
  bytes.writeDoubleLE(value, 1)
  return bytes
}

export function boltzText(value: string): Buffer {
  return Buffer.concat([Buffer.from([5]), Buffer.from(value, 'utf8')])
}

/** Go's Time.MarshalBinary, version 1, in UTC. */
export function boltzTime(iso: string, nanoseconds = 0): Buffer {
  const bytes = Buffer.alloc(16, 6)
  bytes.writeUInt8(1, 1)
  bytes.writeBigInt64BE(BigInt(Math.floor(Date.parse(iso) / 1000)) + 62_135_596_800n, 2)
  bytes.writeInt32BE(nanoseconds, 10)
  bytes.writeInt16BE(-1, 14)
  return bytes
}

export const boltzNil = Buffer.from([7])

/** A set: the members are the keys. */
export function boltzSet(...texts: readonly string[]): BoltTree {
  return { entries: texts.map((text) => [boltzText(text), Buffer.alloc(0)]) }
}

/** A list inside a map. */
export function boltzList(...values: readonly (Uint8Array | BoltTree)[]): BoltTree {
  const size = Buffer.from('__list__size__36484231-110c-4767-afe2-01b6e3db107a')
  return {
    entries: [
      [size, boltzInt32(values.length)],
      ...values.map((value, at) => [boltzInt32(at), value] as const),
    ],
  }
}
