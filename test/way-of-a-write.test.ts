import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

// docs/internals/way-of-a-write.md names the messages and files that a write passes; this test
// compares them with the code.

const root = resolve(import.meta.dirname, '..')
const page = readFileSync(join(root, 'docs/internals/way-of-a-write.md'), 'utf8')
const headings = [...page.matchAll(/^##+ `(\w+)` in `([^`]+)`$/gm)].map(
  ([, message = '', file = '']) => ({ message, file }),
)

/**
 * Whether the file defines the message: a protobuf message, a member of a union of messages, or an
 * interface.
 */
function defines(file: string, message: string): boolean {
  const text = readFileSync(join(root, file), 'utf8')
  const definitions = [
    `message ${message} {`,
    `type: '${message}'`,
    `export interface ${message} {`,
  ]
  return definitions.some((definition) => text.includes(definition))
}

test('each section heading in docs/internals/way-of-a-write.md that names a file is a message that this file defines', () => {
  expect(headings.length).toBeGreaterThan(10)
  expect(headings.filter(({ message, file }) => !defines(file, message))).toEqual([])
})

test('exactly one heading in docs/internals/way-of-a-write.md names no file', () => {
  const others = [...page.matchAll(/^##+ (.*)$/gm)].map(([, text = '']) => text)
  expect(others.length - headings.length).toBe(1)
})

test('each file to which docs/internals/way-of-a-write.md refers exists', () => {
  const files = [...page.matchAll(/`((?:src|proto)\/[\w/.-]+)`/g)].map(([, file = '']) => file)
  expect(files.length).toBeGreaterThan(30)
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
})

test('the messages ProposeRefused and compact, which docs/internals/way-of-a-write.md also mentions, are defined in protobuf or in the channel between threads', () => {
  const sources = ['proto/command.proto', 'proto/mesh.proto', 'src/cluster/thread-channel.ts']
  const named = ['ProposeRefused', 'compact']
  for (const message of named) {
    expect(page).toContain(`\`${message}\``)
    expect(sources.some((file) => defines(file, message))).toBe(true)
  }
})
