import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import { SOFT_VALUE_BYTES_MAX } from '../../src/ports/soft-state.ts'
import { softTopics } from '../../src/ports/soft-topics.ts'

const src = join(import.meta.dirname, '../../src')
const table = 'ports/soft-topics.ts'
const sources = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => [file, readFileSync(join(src, file), 'utf8')] as const)

/** Files that contain a pattern; a file is listed once for each match. */
function found(pattern: RegExp): string[] {
  return sources.flatMap(([file, text]) => [...text.matchAll(pattern)].map(() => file))
}

test('each topic of soft state in the table is opened by exactly one source file, and no other topic is opened', () => {
  const opened = sources.flatMap(([, text]) =>
    [...text.matchAll(/\.open\('([a-z-]+)'\)/g)].map(([, name = '']) => name),
  )
  expect(opened.sort()).toEqual(Object.keys(softTopics).sort())
})

test('topics of soft state are defined only in the table of topics, and only SoftStateChannel sends soft state', () => {
  expect(found(/\bownerBytesMax: (?!number)/g).filter((file) => file !== table)).toEqual([])
  const channel = ['cluster/soft-state/soft-state.ts']
  expect(found(/'soft'|'soft-resync'/g)).toEqual([...channel, ...channel])
  const made = sources.flatMap(([, text]) => [
    ...text.matchAll(/new SoftStateChannel\([\s\S]*?\n {4}\)/g),
  ])
  expect(made).toHaveLength(1)
  expect(made[0]?.[0]).toContain('softTopics,')
})

test('the soft state topics of released versions keep their names', () => {
  const released = ['presence', 'leadership', 'activity', 'posture', 'failed-requests', 'routers']
  expect(Object.keys(softTopics)).toEqual(expect.arrayContaining(released))
})

test('every soft state topic rejects invalid bytes, and has room for one value of maximum size (the topic leadership: 1 KiB) of each owner', () => {
  for (const [name, { decode, ownerBytesMax }] of Object.entries(softTopics)) {
    expect(() => decode(Uint8Array.of(0xff, 0xff)), name).toThrow()
    const isSmall = name === 'leadership'
    expect(ownerBytesMax, name).toBeGreaterThanOrEqual(isSmall ? 1024 : SOFT_VALUE_BYTES_MAX)
  }
})

test('a soft state value is invalid if it contains an integer that is not a safe integer', () => {
  const beyond = Uint8Array.of(0x08, ...new Array<number>(9).fill(0xff), 0x01)
  expect(() => softTopics.activity.decode(beyond)).toThrow(RangeError)
  expect(() => softTopics.posture.decode(beyond)).toThrow(RangeError)
  const nested = Uint8Array.of(0x12, beyond.length, ...beyond)
  expect(() => softTopics.posture.decode(nested)).toThrow(RangeError)
})
