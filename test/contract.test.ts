import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { problems, wireCode } from '../src/lib/problems.ts'
import type { ProblemCode } from '../src/lib/problems.ts'
import { startController } from './api/support/controller.ts'
import type { TestController } from './api/support/controller.ts'
import { bases } from './support/served-answers.ts'

// Goal: the served documents offer what clients of the API family call, and nothing that is offered gets lost.
// Method: each is held to its contract. What is not offered stands in contract-missing.txt, line by line, exactly; what
// will not be judged here at all in contract-except/, a file a contract, each group with its reason.

const shared = resolve(process.env['FLOTILLA_SHARED'] ?? '../shared')
const checker = join(shared, 'tools/contract-check.mjs')
const behaviour = join(shared, 'reference/api-behaviour.md')
const apis = ['client', 'management'] as const
type Contracted = (typeof apis)[number]
const exceptFor = (api: Contracted): string =>
  resolve(import.meta.dirname, `contract-except/${api}.txt`)
const missing = resolve(import.meta.dirname, 'contract-missing.txt')

describe.skipIf(!existsSync(checker))('the contract of the API family', () => {
  let controller: TestController
  let folder = ''
  beforeAll(async () => {
    controller = await startController()
    folder = mkdtempSync(join(tmpdir(), 'flotilla-contract-'))
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true })
    await controller.close()
  })

  /** Lines of what a document lacks, as `<api> <method> <path> <operation>: <what>`. */
  async function faultsOf(api: Contracted): Promise<string[]> {
    const document = join(folder, `${api}.json`)
    const answer = await controller.app.inject(`${bases[api]}/openapi.json`)
    writeFileSync(document, answer.payload)
    const contract = join(shared, `contract/${api}.json`)
    const args = [checker, contract, document, '--except', exceptFor(api), '--verbose']
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    const lines = stdout.trim().split('\n')
    const last = lines.pop() ?? ''
    expect(last, stderr).toMatch(/^[0-9]+ passed, [0-9]+ failed$/)
    console.log(`${api}: ${last}`)
    return lines.map((line) => `${api} ${line}`)
  }

  test('lacks exactly what is written down', async () => {
    const found = [...(await faultsOf('client')), ...(await faultsOf('management'))].sort()
    if (process.env['FLOTILLA_RECORD'] !== undefined) writeFileSync(missing, textOf(found))
    const known = readFileSync(missing, 'utf8').split('\n').filter(Boolean)
    const lost = found.filter((line) => !known.includes(line))
    const kept = known.filter((line) => !found.includes(line))
    expect(lost, 'what was offered before must not get lost').toEqual([])
    expect(kept, 'what is offered now goes out of contract-missing.txt').toEqual([])
  })

  test.each(apis)('leaves out nothing that the %s contract does not have', (api) => {
    const text = readFileSync(join(shared, `contract/${api}.json`), 'utf8')
    const { operations } = JSON.parse(text) as { operations: { path: string }[] }
    const prefixes = readFileSync(exceptFor(api), 'utf8')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
    const idle = prefixes.filter(
      (prefix) => !operations.some(({ path }) => path.startsWith(prefix)),
    )
    expect(idle).toEqual([])
  })
})

describe.skipIf(!existsSync(behaviour))('the codes of the API family', () => {
  test('come with the statuses that its clients know', () => {
    const rows = readFileSync(behaviour, 'utf8').matchAll(/^\| (`[A-Z_`, /]+) \| ([0-9]{3})/gm)
    const known = new Map<string, number>()
    for (const [, names = '', status] of rows) {
      for (const [, name = ''] of names.matchAll(/`([A-Z_]+)`/g)) known.set(name, Number(status))
    }
    expect(known.size).toBeGreaterThan(30)
    const others = Object.entries(problems).filter(([code, { http }]) => {
      const wire = wireCode[code as ProblemCode]
      return wire === undefined && known.has(code) && known.get(code) !== http
    })
    expect(others).toEqual([])
  })
})

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
}
