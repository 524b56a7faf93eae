import { expect, test } from 'vitest'
import type { StateStore, StorePosition, StoreReceiver } from '../../src/ports/state-store.ts'

export interface OpenedStore {
  readonly store: StateStore
  /** Closes the store and opens it again. */
  reopen(): Promise<OpenedStore>
}

export function markAt(index: number, term = 1): StorePosition {
  return {
    position: { term, index },
    timeMs: 1_700_000_000_000 + index,
    configuration: 'Y29uZmlndXJhdGlvbg==',
    digest: `d${index}`,
    featureLevel: 1,
    entitiesDigest: `e${index}`,
  }
}

export async function recordsOf(store: StateStore): Promise<[string, string][]> {
  const records: [string, string][] = []
  for await (const { key, value } of store.records()) records.push([key, value])
  return records
}

export async function chunksOf(store: StateStore): Promise<Uint8Array[]> {
  const snapshot = await store.snapshot()
  const chunks: Uint8Array[] = []
  for await (const chunk of snapshot.chunks()) chunks.push(chunk)
  await snapshot.close()
  return chunks
}

async function writeAll(receiver: StoreReceiver, chunks: Iterable<Uint8Array>): Promise<void> {
  for (const chunk of chunks) await receiver.write(chunk)
}

const records = (...pairs: [string, string | null][]): { key: string; value: string | null }[] =>
  pairs.map(([key, value]) => ({ key, value }))

/**
 * Behavior that is required of every state store. `open` returns an empty store whose snapshots
 * have chunks of `chunkBytes`.
 */
export function stateStoreSuite(
  name: string,
  chunkBytes: number,
  open: () => Promise<OpenedStore>,
): void {
  async function filled(count: number): Promise<OpenedStore> {
    const opened = await open()
    const pairs = Array.from({ length: count }, (_, number): [string, string] => [
      `key-${String(number).padStart(6, '0')}`,
      `value ${number} `.repeat(1 + (number % 7)),
    ])
    await opened.store.write(records(...pairs), markAt(count, 2))
    return opened
  }

  test(`${name}: a new store contains no mark, no records and no snapshot`, async () => {
    const { store } = await open()
    expect(store.mark()).toBeNull()
    expect(await recordsOf(store)).toEqual([])
    await expect(store.snapshot()).rejects.toMatchObject({ code: 'MISSING' })
    await store.close()
  })

  test(`${name}: records and the mark are stored, the newest value of a key takes precedence, and null deletes a key`, async () => {
    const opened = await open()
    await opened.store.write(records(['a', '1'], ['b', '2'], ['c', '']), markAt(1))
    await opened.store.write(records(['b', null], ['a', '3'], ['never', null]), markAt(2))
    const { store } = await opened.reopen()
    expect(store.mark()).toEqual(markAt(2))
    expect(await recordsOf(store)).toEqual([
      ['a', '3'],
      ['c', ''],
    ])
    await store.close()
  })

  test(`${name}: records are read in the order of the UTF-8 bytes of their keys, in whatever order they were written`, async () => {
    const { store } = await open()
    // U+FFFD sorts before U+1F600 by bytes and after it by UTF-16 units.
    const keys = ['\u{1f600}', 'b', 'a/2', '\ufffd', 'a', 'a/10', 'é', 'm', 's']
    await store.write(records(...keys.map((key): [string, string] => [key, key])), markAt(1))
    const sorted = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    expect((await recordsOf(store)).map(([key]) => key)).toEqual(sorted)
    await store.close()
  })

  test(`${name}: malformed keys and values fail an assertion`, async () => {
    for (const [key, value] of [
      ['', 'x'],
      ['\ud800', 'x'],
      ['k'.repeat(5000), 'x'],
      ['k', '\udc00'],
    ] as const) {
      const { store } = await open()
      await expect(store.write([{ key, value }], markAt(1))).rejects.toThrow(/well-formed|at most/)
      expect(await recordsOf(store)).toEqual([])
      await store.close()
    }
  })

  test(`${name}: thousands of records are written in one batch, with deletions and the mark`, async () => {
    const target = await open()
    const many = Array.from({ length: 4500 }, (_, n) => [
      `key-${String(n).padStart(6, '0')}`,
      `${n}`,
    ])
    await target.store.write(records(...(many as [string, string][])), markAt(1))
    const gone = many.slice(0, 4400).map(([key = '']) => ({ key, value: null }))
    await target.store.write([...gone, ...records(['new', 'x'])], markAt(2))
    const { store } = await target.reopen()
    expect(store.mark()).toEqual(markAt(2))
    expect(await recordsOf(store)).toEqual([...many.slice(4400), ['new', 'x']])
    await store.close()
  })

  test(`${name}: a snapshot does not contain later writes, and returns the same bytes each time it is read`, async () => {
    const { store } = await filled(500)
    const snapshot = await store.snapshot()
    await store.write(records(['key-000000', 'changed'], ['new', 'x']), markAt(501, 2))
    const read = async (): Promise<Buffer> => {
      const chunks: Uint8Array[] = []
      for await (const chunk of snapshot.chunks()) {
        expect(chunk.length).toBeLessThanOrEqual(chunkBytes)
        chunks.push(chunk)
      }
      expect(chunks.length).toBeGreaterThan(3)
      return Buffer.concat(chunks)
    }
    const first = await read()
    expect((await read()).equals(first)).toBe(true)
    expect(snapshot.mark).toEqual(markAt(500, 2))
    expect(first.includes('changed')).toBe(false)
    await snapshot.close()
    await store.close()
  })

  test(`${name}: a received snapshot becomes the content of the store when it is activated, not before, and stays after a restart`, async () => {
    const source = await filled(800)
    const expected = await recordsOf(source.store)
    const target = await open()
    await target.store.write(records(['old', '1']), markAt(3))
    const receiver = await target.store.receive()
    await writeAll(receiver, await chunksOf(source.store))
    expect(await receiver.finish()).toEqual(markAt(800, 2))
    expect(target.store.mark()).toEqual(markAt(3))
    expect(await recordsOf(target.store)).toEqual([['old', '1']])
    await target.store.write(records(['old', '2']), markAt(4))
    await receiver.swap()
    expect(target.store.mark()).toEqual(markAt(800, 2))
    expect(await recordsOf(target.store)).toEqual(expected)
    await target.store.write(records(['zz', 'later']), markAt(801, 2))
    const { store } = await target.reopen()
    expect(store.mark()).toEqual(markAt(801, 2))
    expect(await recordsOf(store)).toEqual([...expected, ['zz', 'later']])
    await store.close()
    await source.store.close()
  })

  test(`${name}: the store reports that its state came from a snapshot until a later write, even after restarts`, async () => {
    const source = await filled(20)
    const target = await open()
    await target.store.write(records(['old', '1']), markAt(3))
    expect(target.store.cameBySnapshot()).toBe(false)
    const receiver = await target.store.receive()
    await writeAll(receiver, await chunksOf(source.store))
    await receiver.finish()
    expect(target.store.cameBySnapshot()).toBe(false)
    await receiver.swap()
    expect(target.store.cameBySnapshot()).toBe(true)
    const again = await target.reopen()
    expect(again.store.cameBySnapshot()).toBe(true)
    await again.store.write(records(['zz', 'later']), markAt(21, 2))
    expect(again.store.cameBySnapshot()).toBe(false)
    const { store } = await again.reopen()
    expect(store.cameBySnapshot()).toBe(false)
    await store.close()
    await source.store.close()
  })

  test(`${name}: a snapshot that was received but not activated has no effect after the next start`, async () => {
    const source = await filled(20)
    const target = await open()
    await target.store.write(records(['old', '1']), markAt(3))
    const receiver = await target.store.receive()
    await writeAll(receiver, await chunksOf(source.store))
    await receiver.finish()
    const { store } = await target.reopen()
    expect(store.mark()).toEqual(markAt(3))
    expect(await recordsOf(store)).toEqual([['old', '1']])
    await store.close()
    await source.store.close()
  })

  test(`${name}: snapshots can be received one after the other`, async () => {
    const source = await filled(20)
    const target = await open()
    for (let round = 1; round <= 3; round += 1) {
      await source.store.write(records(['round', String(round)]), markAt(20 + round, 2))
      const receiver = await target.store.receive()
      await writeAll(receiver, await chunksOf(source.store))
      await receiver.finish()
      await receiver.swap()
      expect(target.store.mark()?.position.index).toBe(20 + round)
    }
    expect(await recordsOf(target.store)).toEqual(await recordsOf(source.store))
    await target.store.close()
    await source.store.close()
  })

  test(`${name}: a snapshot can be received in chunks of any size, even of one byte`, async () => {
    const source = await filled(5)
    const whole = Buffer.concat(await chunksOf(source.store))
    const target = await open()
    const receiver = await target.store.receive()
    for (let at = 0; at < whole.length; at += 1) {
      // The caller may reuse its bytes once a write has resolved.
      const chunk = Uint8Array.from(whole.subarray(at, at + 1))
      await receiver.write(chunk)
      chunk.fill(255)
    }
    await receiver.finish()
    await receiver.swap()
    expect(await recordsOf(target.store)).toEqual(await recordsOf(source.store))
    await target.store.close()
    await source.store.close()
  })

  test(`${name}: a truncated, overlong or bit-flipped snapshot is refused, and leaves the store unchanged`, async () => {
    const source = await filled(3)
    const whole = Buffer.concat(await chunksOf(source.store))
    const target = await open()
    await target.store.write(records(['old', '1']), markAt(3))
    const attempt = async (bytes: Uint8Array): Promise<void> => {
      const receiver = await target.store.receive()
      try {
        await receiver.write(bytes)
        await receiver.finish()
      } finally {
        await receiver.abandon()
      }
    }
    await expect(attempt(whole.subarray(0, whole.length - 1))).rejects.toMatchObject({
      code: 'BAD_SNAPSHOT',
    })
    await expect(attempt(Buffer.concat([whole, Buffer.from([0])]))).rejects.toMatchObject({
      code: 'BAD_SNAPSHOT',
    })
    await expect(attempt(new Uint8Array(0))).rejects.toMatchObject({ code: 'BAD_SNAPSHOT' })
    for (let at = 0; at < whole.length; at += 9) {
      const flipped = Uint8Array.from(whole)
      flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8))
      const outcome = await attempt(flipped).then(
        () => 'accepted',
        (error: unknown) => (error as { code?: string }).code,
      )
      expect(['BAD_SNAPSHOT', 'NEWER_FORMAT'], `flip at ${at}`).toContain(outcome)
    }
    await attempt(whole)
    expect(await recordsOf(target.store)).toEqual([['old', '1']])
    expect(target.store.mark()).toEqual(markAt(3))
    await target.store.close()
    await source.store.close()
  })

  test(`${name}: an incomplete snapshot cannot be activated, and only one snapshot is received at a time`, async () => {
    const { store } = await open()
    const receiver = await store.receive()
    await expect(receiver.swap()).rejects.toThrow('only a finished snapshot')
    await expect(store.receive()).rejects.toThrow('one snapshot is received at a time')
    await receiver.abandon()
    await receiver.abandon()
    const second = await store.receive()
    await second.abandon()
    await store.close()
  })

  test(`${name}: an oversized chunk of a snapshot is refused`, async () => {
    const { store } = await open()
    const receiver = await store.receive()
    const chunk = new Uint8Array(8 * 1024 * 1024 + 1)
    await expect(receiver.write(chunk)).rejects.toMatchObject({ code: 'BAD_SNAPSHOT' })
    await receiver.abandon()
    await store.close()
  })

  test(`${name}: a value that is larger than a chunk is transferred unchanged`, async () => {
    const source = await open()
    const value = 'é'.repeat(chunkBytes * 3)
    await source.store.write(records(['big', value], ['end', '']), markAt(1))
    const target = await open()
    const receiver = await target.store.receive()
    await writeAll(receiver, await chunksOf(source.store))
    await receiver.finish()
    await receiver.swap()
    expect(await recordsOf(target.store)).toEqual([
      ['big', value],
      ['end', ''],
    ])
    await target.store.close()
    await source.store.close()
  })
}
