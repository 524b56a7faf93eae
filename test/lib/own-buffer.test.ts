import { describe, expect, test } from 'vitest'

import { toTransferableBytes } from '../../src/lib/runtime/transferable-bytes.ts'

describe('Bytes that are moved into a separate buffer', () => {
  test('are returned without a copy if they fill the whole buffer', () => {
    const bytes = new Uint8Array([1, 2, 3])
    expect(toTransferableBytes(bytes)).toBe(bytes)
  })

  test('are a copy if they are a view of a larger buffer', () => {
    const large = new Uint8Array([0, 1, 2, 3, 4])
    const owned = toTransferableBytes(large.subarray(1, 4))
    expect([...owned]).toEqual([1, 2, 3])
    expect(owned.buffer.byteLength).toBe(3)
    structuredClone(owned, { transfer: [owned.buffer] })
    expect([...large]).toEqual([0, 1, 2, 3, 4])
  })

  test('can be empty, even if their buffer was transferred to another thread before', () => {
    const shared = new Uint8Array(0)
    for (let times = 0; times < 2; times += 1) {
      const { buffer } = toTransferableBytes(shared)
      expect(structuredClone(buffer, { transfer: [buffer] }).byteLength).toBe(0)
    }
    const detached = new Uint8Array(0)
    structuredClone(detached.buffer, { transfer: [detached.buffer] })
    const { buffer } = toTransferableBytes(detached)
    expect(structuredClone(buffer, { transfer: [buffer] }).byteLength).toBe(0)
  })
})
