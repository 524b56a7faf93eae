import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { MarkedSource } from './markers.ts'
import { attackTestOf, markerMisfits, misfitsOf, readMutations } from './mutation.ts'

// `make guards` and `make attacks` check that a test detects each mutation. These tests check that
// each mutation still fits the source.

const root = resolve(import.meta.dirname, '../..')
const source = MarkedSource.read(root)
const guards = readMutations(import.meta.dirname)
const attacks = readMutations(join(root, 'test/attacks'))

test('every mutation that removes a guard can be applied to the source', () => {
  expect(misfitsOf(guards, source)).toEqual([])
})

test('every mutation that lets an attack succeed can be applied to the source', () => {
  expect(misfitsOf(attacks, source)).toEqual([])
})

test('every mutation marker in the source belongs to one mutation', () => {
  const bugs = readMutations(join(root, 'test/zoo'))
  expect(markerMisfits([...guards, ...attacks, ...bugs], source)).toEqual([])
})

test('every mutation that removes a guard or lets an attack succeed gives its reason', () => {
  const silent = [...guards, ...attacks].filter(({ reason }) => reason === '')
  expect(
    silent.map(({ path }) => path),
    'begin them with "# Guard: " and the reason',
  ).toEqual([])
})

test('each attack test has a mutation that removes the protection, and each such mutation has an attack test', () => {
  const tests = readdirSync(join(root, 'test/attacks'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => `test/attacks/${file}`)
  const covered = new Set(attacks.map(({ name }) => attackTestOf(name)))
  expect([...covered].sort()).toEqual(tests.sort())
})
